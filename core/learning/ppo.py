"""Proximal policy optimisation over debates of one step each, with stable-baselines3.

The same small network scores every answer, so a policy serves rosters of any size; only its value
function sees all answers at once. Importing this module imports torch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import VecEnv

from core.learning.metrics import BoolArray, FloatArray
from core.verdict.consensus_weights import AnswerNetwork, softmax

SCORER_HIDDEN_UNITS = 8
PARALLEL_DEBATES = 256  # debates drawn at a time
STEPS_PER_UPDATE = 4  # such draws for an update
PPO_BATCH = 512
PPO_EPOCHS = 4
MAX_SCORE = 20.0  # scores are clipped to ± this
INITIAL_LOG_STD = -0.5  # log of the scores' standard deviation while exploring


class OneStepDebates(VecEnv):
    """An environment that draws debates; an action scores their answers and ends the episode."""

    def __init__(
        self,
        level: FloatArray,
        is_there: BoolArray,
        rewards: FloatArray,
        *,
        seed: int,
        entropy: float,
    ) -> None:
        """`level` is (n, s, d) scaled features, 0 where nobody answered; `rewards` is (n, s)."""
        self._level, self._there, self._rewards = level, is_there, rewards
        self._entropy = entropy
        self._random = np.random.default_rng(seed)
        self._drawn = np.zeros(PARALLEL_DEBATES, dtype=np.int64)
        self._actions = np.zeros((PARALLEL_DEBATES, level.shape[1]))
        observation_space = spaces.Box(
            -np.inf, np.inf, (level.shape[1] * level.shape[2],), np.float32
        )
        action_space = spaces.Box(-MAX_SCORE, MAX_SCORE, (level.shape[1],), np.float32)
        super().__init__(PARALLEL_DEBATES, observation_space, action_space)

    def reset(self) -> Any:
        """Draw the next debates and return their features."""
        self._drawn = self._random.integers(len(self._level), size=PARALLEL_DEBATES)
        return self._level[self._drawn].reshape(PARALLEL_DEBATES, -1).astype(np.float32)

    def step_async(self, actions: Any) -> None:
        """Store the policy's scores for `step_wait`."""
        self._actions = np.asarray(actions, dtype=np.float64)

    def step_wait(self) -> Any:
        """Return the rewards of the scores' weights, and draw the next debates."""
        from core.learning.answer_weights import compute_mixture_reward

        weights = softmax(self._actions, self._there[self._drawn])
        rewards = compute_mixture_reward(weights, self._rewards[self._drawn], self._entropy)
        observed = self._level[self._drawn].reshape(PARALLEL_DEBATES, -1).astype(np.float32)
        infos = [{"terminal_observation": row} for row in observed]
        return (
            self.reset(),
            rewards.astype(np.float32),
            np.ones(PARALLEL_DEBATES, dtype=bool),
            infos,
        )

    def close(self) -> None:
        """Do nothing; there is nothing to close."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return the attribute once for every debate."""
        return [getattr(self, attr_name, None)] * PARALLEL_DEBATES

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Raise NotImplementedError; no attribute can be set."""
        raise NotImplementedError(attr_name)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        """Raise NotImplementedError; no method can be called."""
        raise NotImplementedError(method_name)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return False for every debate."""
        return [False] * PARALLEL_DEBATES


class _Scorer(torch.nn.Module):
    """Scores every answer by the same network: (b, s·d) features to (b, s) scores."""

    def __init__(self, answers: int, wide: int) -> None:
        super().__init__()
        self.answers = answers
        self.hidden = torch.nn.Linear(wide, SCORER_HIDDEN_UNITS)
        # A constant added to every score changes no weight.
        self.out = torch.nn.Linear(SCORER_HIDDEN_UNITS, 1, bias=False)
        torch.nn.init.zeros_(self.out.weight)  # equal weights at first

    def forward(self, observed: torch.Tensor) -> torch.Tensor:
        each = observed.reshape(len(observed), self.answers, -1)
        scores: torch.Tensor = self.out(torch.tanh(self.hidden(each))).squeeze(-1)
        return scores


class _Policy(ActorCriticPolicy):
    """An actor that scores answer by answer, with the default critic."""

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        answers = self.action_space.shape[0]
        self.action_net = _Scorer(answers, self.observation_space.shape[0] // answers)
        self.optimizer = self.optimizer_class(
            self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
        )


class PolicyTrainer:
    """Runs PPO one update at a time; the same seed gives the same policy."""

    def __init__(
        self,
        level: FloatArray,
        is_there: BoolArray,
        rewards: FloatArray,
        *,
        seed: int,
        rate: float,
        entropy: float,
    ) -> None:
        """Takes the same data as `OneStepDebates`; `rate` is the optimiser's learning rate."""
        debates = OneStepDebates(level, is_there, rewards, seed=seed, entropy=entropy)
        layers = {"net_arch": {"pi": [], "vf": [16]}, "log_std_init": INITIAL_LOG_STD}
        with torch.random.fork_rng(devices=()):
            self._ppo = PPO(
                _Policy,
                debates,
                learning_rate=rate,
                n_steps=STEPS_PER_UPDATE,
                batch_size=PPO_BATCH,
                n_epochs=PPO_EPOCHS,
                gamma=1.0,
                gae_lambda=1.0,
                policy_kwargs=layers,
                seed=seed,
                device="cpu",
            )
            self._state = torch.random.get_rng_state()
        self._ppo.set_logger(Logger(folder=None, output_formats=[]))
        self._actor: _Scorer = self._ppo.policy.action_net

    def begin_from(self, policy: AnswerNetwork) -> None:
        """Start from the scores of a policy that was trained before."""
        with torch.no_grad():
            self._actor.hidden.weight.copy_(torch.tensor(policy.hidden).T)
            self._actor.hidden.bias.copy_(torch.tensor(policy.hidden_shift))
            self._actor.out.weight.copy_(torch.tensor(policy.out)[None])

    def update(self) -> None:
        """Draw debates with the current policy, and improve it on them once."""
        with torch.random.fork_rng(devices=()):
            torch.random.set_rng_state(self._state)
            self._ppo.learn(PARALLEL_DEBATES * STEPS_PER_UPDATE, reset_num_timesteps=False)
            self._state = torch.random.get_rng_state()

    def arrays(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the scoring network as (d, h) weights, (h,) biases and (h,) output weights."""
        parts = (self._actor.hidden.weight.T, self._actor.hidden.bias, self._actor.out.weight[0])
        hidden, shift, out = (part.detach().numpy().astype(np.float64) for part in parts)
        return hidden, shift, out
