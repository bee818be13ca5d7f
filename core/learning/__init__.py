"""Learning from people's corrections: training sets, training, versions, weights of agents."""
