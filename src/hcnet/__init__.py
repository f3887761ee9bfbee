"""hcnet"""
