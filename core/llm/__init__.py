"""Language models: the litellm boundary, metering, prompts, and the sentence encoders."""
