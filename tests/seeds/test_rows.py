"""Which tests hold the systems that Ablate must contain, row by row, and that each of them is there.

A row names the system; under it stand the tests that compute its figure, by file and the beginning of their names.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
MODEL, PLUGINS, SEEDS = "ablate/model", "ablate_plugins", "seeds"

ROWS: dict[str, dict[str, list[str]]] = {
    "post-norm": {
        f"{MODEL}/test_sublayer.py": ["post_and_pre_equal_torchs_encoder_layer"],
        f"{MODEL}/test_reference.py": [
            "a_block_with_cross_attention_is_torchs_decoder_layer",
            "a_whole_encoder_with_padding_is_torchs",
        ],
    },
    "pre-norm": {f"{MODEL}/test_sublayer.py": ["post_and_pre_equal_torchs_encoder_layer"]},
    "post-norm inside the residual": {
        f"{MODEL}/test_sublayer.py": [
            "residual_post_norm_is_the_formula_bit_for_bit",
            "dropout_is_on_the_branch_outside_of_the_inner_norm",
        ]
    },
    "LayerNorm": {
        f"{PLUGINS}/test_norm.py": [
            "layer_norm_is_the_formula_with_biased_variance_and_eps_inside_the_root",
            "layer_norm_ignores_shift_and_scale",
            "layer_norms_gradient_is_orthogonal_to_ones_and_to_its_output",
        ]
    },
    "LayerNorm against BatchNorm": {
        f"{PLUGINS}/test_norm.py": ["batch_norm_leaks_the_future", "batch_norm_declares_what_it_leaks"],
        f"{SEEDS}/test_start.py": ["batch_norm_lets_a_model_see_its_future_and_other_sequences"],
    },
    "residual on/off": {
        f"{MODEL}/test_sublayer.py": ["residual_off_is_the_update_alone"],
        f"{SEEDS}/test_residual.py": [
            "without_a_residual_tokens_collapse_to_rank_one",
            "gradient_goes_on_where_sublayers_give_nothing",
            "a_block_of_small_sublayers_is_nearly_the_identity",
            "a_rezero_model_is_its_embeddings",
        ],
    },
    "attention scaling on/off": {
        f"{PLUGINS}/test_scale.py": ["variance_of_logits_of_unit_queries_and_keys"],
        f"{MODEL}/test_attention.py": ["scaled_logits_have_variance_one_and_unscaled_ones_the_heads_width"],
        f"{SEEDS}/test_attention_scale.py": [
            "at_the_start_of_a_model_unscaled_attention_is_saturated",
            "the_softmaxs_derivative_vanishes",
            "a_saturated_softmax_passes_no_gradient",
            "in_training_unscaled_heads_grow_alike",
        ],
    },
    "multi-head attention": {
        f"{MODEL}/test_attention.py": ["size_at_512_is_vaswanis_and_independent_of_heads"],
        f"{MODEL}/test_reference.py": ["attention_is_torchs_multihead_attention"],
        f"{PLUGINS}/mixer/test_attention.py": ["it_is_the_formula", "it_keeps_what_every_mixer_promises"],
        f"{SEEDS}/test_sizes.py": ["the_number_of_heads_changes_no_parameter"],
    },
    "position-wise FFN": {
        f"{PLUGINS}/test_feed_forward.py": [
            "size_at_512_is_vaswanis",
            "each_token_is_treated_alone",
            "half_of_the_relu_units_are_zero_at_the_start",
        ],
        f"{SEEDS}/test_sizes.py": ["a_feed_forward_network_has_twice_the_parameters_of_attention"],
    },
    "FFN width": {
        f"{SEEDS}/test_sizes.py": ["a_feed_forward_networks_parameters_by_its_width"],
        f"{SEEDS}/test_sequences.py": ["a_wider_feed_forward_network_reaches_a_lower_loss"],
    },
    "token embedding × √d": {
        f"{SEEDS}/test_start.py": ["scaled_embeddings_have_d_times_the_variance_at_the_input"],
        f"{MODEL}/test_stack.py": ["scaling_multiplies_the_embeddings_variance_by_the_width"],
    },
    "sinusoidal positions": {
        f"{PLUGINS}/test_position.py": [
            "sinusoidal_is_vaswanis_formula",
            "sinusoidal_products_depend_on_the_distance_alone",
        ],
        f"{SEEDS}/test_start.py": [
            "without_positions_an_encoder_gives_permuted_tokens_permuted_outputs",
            "with_positions_it_does_not",
            "without_positions_a_causal_decoder_does_not_either",
        ],
    },
    "output layer tied to the embedding": {
        f"{MODEL}/test_decoder.py": ["a_tied_output_is_the_embedding_and_counts_once"],
        f"{PLUGINS}/model/test_encoder_decoder.py": ["one_table_may_be_shared_by_source_target_and_output"],
        f"{SEEDS}/test_start.py": ["the_first_loss_is_ln_v_and_half_the_variance_of_the_logits"],
    },
    "decoding": {
        f"{PLUGINS}/test_decoding.py": ["without_a_penalty_no_beam_is_under_greedy", "the_nucleus_by_hand"],
        f"{MODEL}/test_decoding.py": [
            "every_mixer",
            "every_position",
            "every_scale",
            "texts_have_the_scores_that_the_whole_forward_pass_gives_them",
            "no_beam_is_under_greedy_in_model_score",
        ],
        f"{SEEDS}/test_sequences.py": ["a_trained_transformer_writes_what_it_was_taught"],
    },
    "encoder, decoder, encoder-decoder": {
        f"{MODEL}/test_networks.py": [
            "a_decoder_beside_an_encoder_is_causal_and_sees_no_padding",
            "every_output_moves_with_every_token_of_the_source",
            "no_logits_depend_on_a_later_token",
            "padding_changes_no_label_and_no_token",
        ],
        f"{MODEL}/test_reference.py": ["a_whole_encoder_with_a_decoder_of_another_depth_is_torchs"],
        f"{PLUGINS}/model/test_encoder_decoder.py": ["its_stacks_have_their_own_depths"],
    },
    "RNN sequence-to-sequence": {
        f"{PLUGINS}/model/test_rnn_seq2seq.py": ["the_encoder_is_torchs_on_packed_sequences"],
        f"{SEEDS}/test_sequences.py": [
            "one_fixed_vector_cannot_hold_sixteen_symbols",
            "the_fixed_vector_loses_accuracy_as_sequences_grow",
        ],
    },
    "CNN sequence-to-sequence": {
        f"{PLUGINS}/model/test_conv_seq2seq.py": [
            "it_is_the_papers_formula",
            "without_attention_the_source_is_known_within_the_receptive_field",
        ],
        f"{SEEDS}/test_sequences.py": ["convolutions_write_backwards_only_what_is_in_their_receptive_field"],
    },
    "why attention": {
        f"{SEEDS}/test_sequences.py": [
            "convolutions_write_backwards_only_what_is_in_their_receptive_field",
            "depth_widens_what_convolutions_see_and_attention_needs_none",
            "the_fixed_vector_loses_accuracy_as_sequences_grow",
        ]
    },
    "Base in Vaswani's sizes": {
        f"{SEEDS}/test_sizes.py": ["base_is_its_table_and_its_blocks", "one_change_from_base_changes_the_parameters"]
    },
}


@pytest.mark.parametrize("row", ROWS)
def test_every_row_is_held_by_tests_that_are_there(row: str) -> None:
    for file, wanted in ROWS[row].items():
        tree = ast.parse((TESTS / file).read_text("utf-8"))
        names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        for name in wanted:
            assert any(each.startswith(f"test_{name}") for each in names), f"{file}: no test_{name}"
