"""relae: RElaxed Linear AutoEncoders, recommenders with a closed form."""

__version__ = "0.1.0"
