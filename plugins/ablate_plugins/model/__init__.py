"""Models: the skeletons that an experiment can start from; each module is registered by itself."""

from ablate_plugins.model.decoder import Decoder
from ablate_plugins.model.encoder import Encoder
from ablate_plugins.model.encoder_decoder import EncoderDecoder

__all__ = ["Decoder", "Encoder", "EncoderDecoder"]
