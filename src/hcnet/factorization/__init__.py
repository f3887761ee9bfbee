"""Boolean matrix factorization: the network whose images are single pixels of many channels."""
