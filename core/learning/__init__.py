"""What people's corrections teach: training sets, retraining, versions."""
