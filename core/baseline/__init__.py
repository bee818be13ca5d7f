"""The keyless engine: reads evidence and statements with small trained models on this computer."""
