"""Folders of random weights in the form of the pretrained systems: names and shapes, no knowledge.

The shapes are written out here from the description of each release, not asked of the code.
"""

import json

import numpy as np
from safetensors.numpy import save_file

DADA = {
    "seq_len": 100,
    "patch_len": 5,
    "hidden_dim": 64,
    "d_model": 256,
    "depth": 10,
    "bn_dims": [16, 32, 64, 128, 192, 256],
    "k": 3,
    "mask_mode": "c",
    "max_iters": 100000,
}
SMALL_DADA = {**DADA, "hidden_dim": 4, "d_model": 6, "depth": 2, "bn_dims": [2, 3, 4, 5]}

TSPULSE = {
    "context_length": 512,
    "patch_length": 8,
    "patch_stride": 8,
    "d_model": 24,
    "decoder_d_model": 24,
    "num_layers": 8,
    "decoder_num_layers": 2,
    "expansion_factor": 2,
    "patch_register_tokens": 10,
    "register_mixer_layers": 3,
    "prediction_length": 16,
    "fft_prob_length": 256,
    "mode": "common_channel",
    "decoder_mode": "common_channel",
    "scaling": "revin",
    "revin_affine": True,
    "minimum_scale": 1e-3,
    "norm_eps": 1e-5,
    "fuse_fft": True,
    "fft_time_add_forecasting_pt_loss": True,
    "enable_fft_prob_loss": True,
    "mask_type": "user",
    "mask_block_length": 8,
    "dropout": 0.2,
    "head_dropout": 0.2,
}
SMALL_TSPULSE = {
    **TSPULSE,
    "context_length": 64,
    "d_model": 4,
    "decoder_d_model": 4,
    "num_layers": 2,
    "decoder_num_layers": 1,
    "patch_register_tokens": 3,
    "register_mixer_layers": 1,
    "prediction_length": 2,
    "fft_prob_length": 32,
}


def dada_shapes(config):
    """Name to shape, without the prefix."""
    hidden, d, patch = config["hidden_dim"], config["d_model"], config["patch_len"]
    shapes = {"input_embed": [(hidden, patch)]}
    for i in range(config["depth"] + 1):
        last = i == config["depth"]
        out = d if last else hidden
        name = f"encoder.feature_extractor.net.{i}"
        shapes[f"{name}.conv1.conv"] = [(out, hidden, 3)]
        shapes[f"{name}.conv2.conv"] = [(out, out, 3)]
        if last:
            shapes[f"{name}.projector"] = [(out, hidden, 1)]
    for j, width in enumerate(config["bn_dims"]):
        name = f"adaptive_bottleneck.bottlenecks.{j}.net"
        shapes[f"{name}.0"] = [(width, d)]
        shapes[f"{name}.2"] = [(width, width)]
        shapes[f"{name}.5"] = [(d, width)]
    for decoder in ("decoder", "adv_decoder"):
        shapes[f"{decoder}.net.1"] = [(2 * d, d)]
        shapes[f"{decoder}.net.3"] = [(2 * d, 2 * d)]
        shapes[f"{decoder}.net.5"] = [(patch, 2 * d)]
    flat = config["seq_len"] // patch * d
    gates = {"w_gate": (flat, len(config["bn_dims"])), "w_noise": (flat, len(config["bn_dims"]))}
    return {
        **with_biases(shapes),
        **{f"adaptive_bottleneck.{name}": shape for name, shape in gates.items()},
        "adaptive_bottleneck.mean": (1,),
        "adaptive_bottleneck.std": (1,),
    }


def tspulse_shapes(config):
    """Name to shape."""
    patch, d = config["patch_length"], config["d_model"]
    registers = config["patch_register_tokens"]
    tokens = 2 * config["context_length"] // patch + registers
    layers = {
        "backbone.encoder_block": (config["num_layers"], tokens),
        "decoder_with_head.decoder.decoder_block": (config["decoder_num_layers"], tokens),
        "decoder_with_head.forecast_mapping.0": (config["register_mixer_layers"], registers),
        "decoder_with_head.fft_softmax_mapping.0": (config["register_mixer_layers"], registers),
    }
    shapes = {
        "backbone.time_encoding.patcher": [(d, patch)],
        "backbone.fft_encoding.patcher": [(d, patch)],
        "backbone.base_norm": [(tokens * d,)],
        "decoder_with_head.time_head.base_reconstruction_block": [(patch, d)],
        "decoder_with_head.fft_head.base_reconstruction_block": [(patch, d)],
    }
    outputs = {
        "forecast_mapping": config["prediction_length"],
        "fft_softmax_mapping": config["fft_prob_length"],
    }
    for name, size in outputs.items():
        shapes[f"decoder_with_head.{name}.2"] = [(registers * d,)]
        shapes[f"decoder_with_head.{name}.3"] = [(size, registers * d)]
    for block, (count, length) in layers.items():
        for i in range(count):
            for mixer, size in (("patch_mixer", length), ("feature_mixer", d)):
                name = f"{block}.mixers.{i}.{mixer}"
                shapes[f"{name}.norm.norm"] = [(d,)]
                shapes[f"{name}.mlp.fc1"] = [(config["expansion_factor"] * size, size)]
                shapes[f"{name}.mlp.fc2"] = [(size, config["expansion_factor"] * size)]
                shapes[f"{name}.gating_block.attn_layer"] = [(size, size)]
    return {
        **with_biases(shapes),
        "backbone.time_masker.mask_token": (patch,),
        "backbone.scaler.affine_weight": (1, 1, 1),
        "backbone.scaler.affine_bias": (1, 1, 1),
        "backbone.add_tokens.patch_tokens": (registers, d),
    }


def with_biases(shapes):
    named = {}
    for name, (shape,) in shapes.items():
        named[f"{name}.weight"] = shape
        named[f"{name}.bias"] = shape[:1]
    return named


def random_tensors(shapes, seed=0):
    rng = np.random.default_rng(seed)
    return {
        name: (rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        for name, shape in sorted(shapes.items())
    }


def dada_tensors(config, seed=0):
    shapes = {f"model.{name}": shape for name, shape in dada_shapes(config).items()}
    return random_tensors(shapes, seed)


def tspulse_tensors(config, seed=0):
    return random_tensors(tspulse_shapes(config), seed)


def write_folder(folder, config, tensors):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors")
    return folder
