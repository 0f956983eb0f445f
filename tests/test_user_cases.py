"""Which tests hold what users of such tools ran into, case by case, and that each of them is there.

A case says what is put in and what is right; under it stand the tests that hold it, by file and the beginning of their
names.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CLI, SWEEP, TRAINING, EXPERIMENT = "ablate/cli", "ablate/sweep", "ablate/training", "ablate/experiment"
PLANNING, ANALYSIS, RECORDS, REPORTING = "ablate/planning", "ablate/analysis", "ablate/records", "ablate/reporting"

CASES: dict[str, dict[str, list[str]]] = {
    "1: uneven trials on four workers run exactly once": {
        f"{SWEEP}/test_driver.py": [
            "six_uneven_trials_on_four_workers_run_exactly_once",
            "two_drivers_on_one_study",
            "the_same_call_again_runs_nothing",
        ],
        f"{SWEEP}/test_tuning.py": ["one_worker_and_four_propose_the_same_values"],
        f"{SWEEP}/bookkeeping/test_shared.py": ["one_study_belongs_to_one_folder"],
    },
    "2: a baseline that is also a cell runs once": {
        f"{CLI}/test_user_cases.py": ["2_a_baseline_that_is_a_cell_of_the_grid_runs_once"],
        f"{EXPERIMENT}/test_arms.py": ["equal_arms_fall_together"],
        f"{PLANNING}/test_matching.py": ["arms_that_matching_makes_one_fall_together_and_run_once"],
    },
    "3: out of memory even after halving, mended, retried alone": {
        f"{CLI}/test_user_cases.py": ["3_what_runs_out_of_memory_waits_and_is_retried_alone"],
        f"{SWEEP}/test_driver.py": [
            "what_ran_out_of_memory_can_be_retried_alone",
            "a_lost_worker_is_the_cause_of_a_failure_and_no_want_of_memory",
        ],
        f"{TRAINING}/test_out_of_memory.py": [
            "a_batch_in_parts_trains_as_the_whole_one",
            "memory_that_is_too_short_for_one_sequence_is_an_error",
            "what_says_that_memory_is_short",
        ],
    },
    "4: a killed worker's trial goes on from its checkpoint": {
        f"{SWEEP}/test_driver.py": [
            "a_killed_worker_costs_an_attempt_and_the_trial_goes_on_from_its_checkpoint",
            "a_trial_that_loses_its_worker_again_and_again_has_failed",
            "a_killed_driver_takes_its_workers_along_and_the_same_call_goes_on",
        ],
        f"{SWEEP}/bookkeeping/test_index.py": ["a_trial_that_was_running_when_everything_died_is_taken_up_again"],
        f"{SWEEP}/test_chaos_real.py": ["a_hundred_kills_change_no_bit"],
        f"{TRAINING}/test_resume.py": [
            "a_worker_that_ends_in_the_middle_of_the_epoch_is_resumed_bit_for_bit",
            "a_truncated_checkpoint_is_said_and_the_one_before_it_is_used",
        ],
    },
    "5: a finished grid that grows runs new cells alone": {
        f"{CLI}/test_user_cases.py": [
            "5_a_grid_that_grows_keeps_its_trials",
            "5_a_finished_grid_that_grows_runs_new_cells_alone",
        ],
        f"{CLI}/test_run.py": ["a_finished_grid_gains_a_level_and_then_a_factor"],
        f"{SWEEP}/test_driver.py": ["a_plan_that_grows_runs_what_is_new_and_one_that_shrinks_keeps_the_rest"],
        f"{SWEEP}/test_growing.py": ["more_steps_go_on_from_where_fewer_ended"],
    },
    "6: thirty binary factors are refused with their number": {
        f"{CLI}/test_user_cases.py": ["6_thirty_factors_are_refused_at_once_with_their_number"],
        f"{PLANNING}/test_resolving.py": ["too_many_trials_are_refused_before_any_arm_is_made"],
    },
    "7: every trial gives NaN": {
        f"{CLI}/test_user_cases.py": ["7_and_8_a_study_of_trials_that_all_diverge_is_reported"],
        f"{ANALYSIS}/test_results.py": ["where_every_trial_diverged_every_arm_is_diverged"],
        f"{ANALYSIS}/test_factorial.py": ["every_trial_diverged"],
    },
    "8: a loss that is infinite is a divergence": {
        f"{CLI}/test_user_cases.py": [
            "7_and_8_a_study_of_trials_that_all_diverge_is_reported",
            "8_an_infinite_value_at_the_end_is_divergence_down_to_the_tables",
        ],
        f"{ANALYSIS}/test_results.py": ["an_infinite_loss_is_a_divergence_and_enters_no_mean"],
        f"{RECORDS}/test_frames.py": ["an_infinite_loss_is_a_divergence_whatever_the_record_calls_it"],
        f"{TRAINING}/test_trial.py": [
            "a_final_value_that_is_not_finite_is_divergence",
            "an_objective_that_is_not_finite_is_divergence",
        ],
        f"{SWEEP}/test_driver.py": ["a_diverged_trial_is_a_result"],
    },
    "9: pruning while tuning alone, and in no mean": {
        f"{CLI}/test_user_cases.py": [
            "9_pruning_is_refused_outside_tuning",
            "9_an_arm_that_starts_slow_is_pruned_against_itself_alone",
            "9_a_pruned_trial_enters_no_mean",
        ],
        f"{EXPERIMENT}/test_keys.py": ["pruning_is_told_where_it_is_allowed"],
        f"{SWEEP}/test_tuning.py": ["halving_judges_a_batch_at_each_rung_and_gives_the_worse_up"],
        "ablate/test_api.py": ["each_arm_is_tuned_before_it_is_judged"],
    },
    "10: eight processes on one SQLite file, one killed while it writes": {
        f"{SWEEP}/bookkeeping/test_books.py": [
            "eight_processes_on_one_file_of_which_one_is_killed_in_the_middle_of_a_write",
            "a_lock_of_30_seconds_is_waited_for",
        ],
        f"{SWEEP}/bookkeeping/test_index.py": ["a_writer_beside_us_delays_and_breaks_nothing"],
    },
    "11: a key at another place, a path that nothing reads": {
        f"{CLI}/test_yaml_cases.py": ["a_slip_is_told_with_its_line_and_the_remedy"],
        f"{EXPERIMENT}/test_keys.py": ["an_unknown_key_is_spelled_placed_or_told_what_there_is"],
    },
    "12: one number twice, yes and no, `no` for `none`, a key twice": {
        f"{CLI}/test_yaml_cases.py": [
            "a_slip_is_told_with_its_line_and_the_remedy",
            "a_switch_takes_on_and_off_and_true_and_false",
            "other_words_for_it_are_errors_with_the_right_spelling",
        ],
        f"{EXPERIMENT}/yaml/test_scalars.py": ["two_spellings_of_one_number_are_one_number"],
    },
    "13: killed at trial 5 of 20, and the same command again": {
        f"{CLI}/test_run.py": ["a_killed_run_goes_on_from_where_it_was"],
        f"{CLI}/test_verbs.py": ["an_interrupted_run_exits_130_and_goes_on"],
        f"{SWEEP}/test_driver.py": ["a_signal_checkpoints_and_ends_and_the_same_call_goes_on"],
    },
    "14: names with a slash or 300 characters, two trials in one second": {
        f"{CLI}/test_user_cases.py": [
            "14_and_21_any_text_is_a_level_and_null_is_its_own",
            "14_a_name_of_300_characters_is_an_error",
        ],
        f"{SWEEP}/test_clock.py": ["trials_of_one_second_and_of_any_name_do_not_clash"],
    },
    "15: a trial that raises": {
        f"{CLI}/test_verbs.py": ["a_trial_that_raises_is_shown_the_others_run_and_it_can_be_retried"],
        f"{SWEEP}/test_driver.py": [
            "a_trial_that_raises_is_shown_at_once_and_the_others_run",
            "a_trial_after_a_failed_one_gets_a_fresh_process",
            "a_trainer_that_exits_has_failed",
        ],
    },
    "16: code for `lightning` meets `pytorch_lightning`": {
        "ablate_plugins/task/test_datamodule.py": ["the_mix_of_two_lightnings_is_named"],
        "ablate/data/test_sources.py": ["a_bad_object_is_one_sentence"],
        "ablate/test_registry.py": ["a_useless_file_is_one_clear_error"],
    },
    "17: the same trial first and third, and fifty of them": {
        f"{TRAINING}/test_repeating.py": [
            "the_same_trial_first_and_third_in_one_process_is_the_same_bit_for_bit",
            "memory_does_not_grow_over_fifty_trials_of_one_worker",
        ],
        f"{TRAINING}/test_resume.py": ["the_same_trial_is_the_same_in_any_order_within_a_process"],
        f"{SWEEP}/workers/test_local.py": ["a_worker_that_leaks_is_let_go_and_another_takes_its_place"],
    },
    "18: a broken plugin, two of one name, a component that is not there": {
        "ablate/test_registry.py": [
            "a_broken_module_harms_no_other_and_is_remembered",
            "a_clash_names_both_origins_whichever_comes_first",
            "unknown_component_says_what_was_meant_and_what_exists",
        ],
        "test_distribution.py": [
            "broken_plugins_are_listed_and_break_nothing",
            "a_clash_names_both_distributions_where_its_name_is_used",
        ],
    },
    "19: an option that changes nothing": {
        f"{PLANNING}/test_guard.py": ["an_option_that_is_read_by_nothing_is_found_out"],
        f"{PLANNING}/test_resolving.py": [
            "an_option_that_has_no_effect_is_an_error_at_its_level_before_anything_runs",
            "every_option_without_an_effect_is_told_at_once",
        ],
    },
    "20: a gate at the same ratio carries its parameters": {
        f"{CLI}/test_user_cases.py": ["20_a_gate_at_the_same_ratio_carries_its_parameters_and_matching_removes_them"],
        f"{PLANNING}/test_matching.py": [
            "a_gate_at_the_same_ratio_has_half_as_many_parameters_more_and_matching_removes_them"
        ],
    },
    "21: a level null stays its own": {
        f"{CLI}/test_user_cases.py": [
            "14_and_21_any_text_is_a_level_and_null_is_its_own",
            "21_null_stays_apart_in_every_frame_table_and_file",
        ],
        f"{RECORDS}/test_frames.py": ["a_null_level_survives_a_groupby_and_a_csv"],
        f"{REPORTING}/test_writing.py": ["a_level_null_stays_apart"],
        f"{ANALYSIS}/test_contrasts.py": ["null_is_a_level_and_no_absence"],
    },
    "22: a better mean with an interval that includes 0": {
        f"{CLI}/test_user_cases.py": [
            "22_an_interval_that_includes_0_is_undecided_with_the_number_of_seeds",
            "22_a_better_mean_is_undecided_all_the_same",
        ],
        f"{ANALYSIS}/test_verdict.py": ["undecided_names_the_seeds_that_would_settle_it"],
        f"{ANALYSIS}/test_effects.py": ["an_undecided_effect_says_how_many_seeds_would_settle_it"],
    },
}


def test_every_case_has_its_tests() -> None:
    assert [int(case.partition(":")[0]) for case in CASES] == list(range(1, 23))


@pytest.mark.parametrize("case", CASES)
def test_every_case_is_held_by_tests_that_are_there(case: str) -> None:
    for file, wanted in CASES[case].items():
        tree = ast.parse((TESTS / file).read_text("utf-8"))
        names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        for name in wanted:
            assert any(each.startswith(f"test_{name}") for each in names), f"{file}: no test_{name}"
