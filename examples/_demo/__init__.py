"""What `examples/demo.py` is made of: tools, the three clients, the model's lines, and the screen."""
