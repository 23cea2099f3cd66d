"""Each rule of the two documents about reading and planning, the code that keeps it and the test that sees it.

A sabotage removes the rule from the code; `tests/deep/planning.py` shows that the named test then fails. The
tables in docs/contracts/seed-001.md and seed-003.md are checked against this list by a fast test.
"""

# ruff: noqa: E501 - each rule is one row of a table
from __future__ import annotations

from typing import NamedTuple

BASE = "viano_assets.phases"
TESTS = "tests/phases"


class Rule(NamedTuple):
    """`old` stands exactly once in `module` and is replaced by `new`."""

    id: str
    module: str
    old: str
    new: str
    test: str


def _rule(name: str, module: str, old: str, new: str, test: str) -> Rule:
    file, _, function = test.partition("::")
    place = module if module.startswith("viano_assets.") else f"{BASE}.{module}"
    return Rule(name, place, old, new, f"{TESTS}/{file}::{function}")


HB = "hypotheses/test_builder.py::"
HR = "hypotheses/test_rules.py::"
IB = "interpretation/test_builder.py::"
IR = "interpretation/test_rules.py::"
PJ = "planning/test_joint.py::"
PP = "planning/test_premises.py::"
PC = "planning/test_repair.py::"
PL = "planning/test_places.py::"
PV = "planning/test_v1.py::"
PK = "planning/test_kills.py::"

SEED_001: tuple[Rule, ...] = (
    _rule("001-01", "hypotheses.config", "strict=True, ge=1", "strict=True, ge=-9", HB + "test_counts_and_budget_are_positive_integers_in_order"),
    _rule("001-02", "hypotheses.config", "if self.min_hypotheses > self.max_hypotheses:", "if False:", HB + "test_counts_and_budget_are_positive_integers_in_order"),
    _rule("001-03", "common", "    if not published:\n        raise BlockedError(", "    if published and not published:\n        raise BlockedError(", HB + "test_without_an_interpretation_the_phase_refuses_and_runs_nothing"),
    _rule("001-04", "interpretation.accepted", "if store.read(head, path) != canonical_json(rebuilt):", "if False:", IB + "test_even_a_consistent_forgery_of_one_artifact_is_found"),
    _rule("001-05", "viano_assets.case.freshness", "        if path not in bound:\n", "        if False:\n", IB + "test_a_raw_input_added_later_makes_the_revision_stale"),
    _rule("001-06", "interpretation.accepted", 'if head.pointer("interpretation_summary") != artifact_path(_PHASE, head.revision, SUMMARY):', "if False:", IB + "test_a_summary_pointer_that_names_another_artifact_is_found"),
    _rule("001-07", "calls", "if request.sha256 != call.request_sha256:", "if False:", PC + "test_the_chain_is_verified_on_every_read"),
    _rule("001-08", "hypotheses.builder", "if missing_observation(interpretation.statements):", "if False:", HB + "test_without_an_observation_there_is_no_invented_h1"),
    _rule("001-09", "hypotheses.context", 'PROMPT = "hypotheses_v1"', 'PROMPT = "interpretation_v1"', HB + "test_the_request_shows_catalogue_statements_policy_and_no_payload"),
    _rule("001-10", "hypotheses.context", '        section("case", case_section(interpretation.case)),\n', "", HB + "test_the_request_shows_catalogue_statements_policy_and_no_payload"),
    _rule("001-11", "interpretation.rules", 'f"I{number}"', 'f"S{number}"', IR + "test_statements_get_ids_in_the_order_of_the_contract_with_their_pointers"),
    _rule("001-12", "hypotheses.context", '        section("policy", shown),\n', "", HB + "test_the_policy_is_saved_before_the_first_request"),
    _rule("001-13", "hypotheses.policy", "untested initial proposals", "findings", HB + "test_a_new_policy_takes_effect_with_a_new_revision_and_old_allocations_stay"),
    _rule("001-14", "hypotheses.contract", "    rationale: Text\n", '    rationale: Text = "-"\n', HR + "test_every_part_of_a_candidate_is_required_and_nonblank"),
    _rule("001-15", "hypotheses.rules", "        if name not in known:", "        if False:", HR + "test_references_exist_in_exactly_this_context"),
    _rule("001-16", "hypotheses.rules", "if not set(human) & set(candidate.source_ids):", "if False:", HR + "test_the_first_candidate_cites_what_a_person_saw"),
    _rule("001-17", "hypotheses.rules", "if not set(scope.focus) & set(candidate.interpretation_ids):", "if False:", HR + "test_the_first_candidate_cites_the_divergence_first_of_all"),
    _rule("001-18", "hypotheses.rules", '("first_known_divergence", "failure_stage", "observed_behavior")', '("first_known_divergence", "observed_behavior")', HR + "test_without_divergence_the_first_candidate_cites_the_failure_stage"),
    _rule("001-19", "hypotheses.rules", '("first_known_divergence", "failure_stage", "observed_behavior")', '("first_known_divergence", "failure_stage")', HR + "test_without_either_the_first_candidate_cites_observed_behaviour"),
    _rule("001-20", "hypotheses.rules", "    if index == 0:\n", "    if True:\n", HR + "test_only_the_first_candidate_is_bound_to_the_focus"),
    _rule("001-21", "hypotheses.rules", "elif not _grounded(candidate, scope):", "elif False:", HR + "test_no_candidate_stands_on_assumptions_expectations_and_unread_code_alone"),
    _rule("001-22", "hypotheses.rules", 'for name in ("title", "mechanism"):', 'for name in ("mechanism",):', HR + "test_duplicates_are_found_behind_presentation"),
    _rule("001-23", "hypotheses.rules", 'for name in ("title", "mechanism"):', 'for name in ("title",):', HR + "test_duplicates_are_found_behind_presentation"),
    _rule("001-24", "hypotheses.rules", 'unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())', "text.casefold()", HR + "test_duplicates_are_found_behind_presentation"),
    _rule("001-25", "hypotheses.rules", ".casefold()", "", HR + "test_duplicates_are_found_behind_presentation"),
    _rule("001-26", "hypotheses.rules", 'not in "PZC"', 'not in "ZC"', HR + "test_duplicates_are_found_behind_presentation"),
    _rule("001-27", "hypotheses.rules", 'not in "PZC"', 'not in "PC"', HR + "test_duplicates_are_found_behind_presentation"),
    _rule("001-28", "wire", 'frozen=True, extra="forbid", strict=True', 'frozen=True, extra="ignore", strict=True', HR + "test_the_model_gives_no_id_state_confidence_budget_patch_or_tool"),
    _rule("001-29", "hypotheses.accepted", '"id": f"H{position}"', '"id": f"H{position + 1}"', HB + "test_the_controller_gives_ids_states_roles_and_allocations"),
    _rule("001-30", "hypotheses.accepted", '"confidence": "unassessed"', '"confidence": "plausible"', HB + "test_the_controller_gives_ids_states_roles_and_allocations"),
    _rule("001-31", "hypotheses.accepted", '"tester_primary" if position == 1 else "alternative"', '"alternative"', HB + "test_the_controller_gives_ids_states_roles_and_allocations"),
    _rule("001-32", "hypotheses.builder", "{**put, path: data}", "{path: data}", HB + "test_the_policy_is_saved_before_the_first_request"),
    _rule("001-33", "hypotheses.builder", "            if changed:\n                raise policy_changed(head, changed)\n", "            del changed\n", HB + "test_a_changed_policy_is_refused_while_pending"),
    _rule("001-34", "hypotheses.builder", 'if events(head, _PHASE, "published"):', "if False:", HB + "test_a_completed_batch_is_reused_whatever_configuration_or_attempt_id"),
    _rule("001-35", "hypotheses.policy", 'return artifact_path(_PHASE, revision, "policy.json")', 'return artifact_path(_PHASE, 1, "policy.json")', HB + "test_a_new_policy_takes_effect_with_a_new_revision_and_old_allocations_stay"),
    _rule("001-36", "hypotheses.accepted", '{"initial": policy["initial_budget"], "unit": UNIT}', '{"initial": 100, "unit": UNIT}', HB + "test_the_controller_gives_ids_states_roles_and_allocations"),
    _rule("001-37", "hypotheses.accepted", '"budget_accounting": "not_started"', '"budget_accounting": "started"', HB + "test_the_controller_gives_ids_states_roles_and_allocations"),
    _rule("001-38", "hypotheses.accepted", '"remaining_slots": policy["max_hypotheses"] - len(created)', '"remaining_slots": policy["max_hypotheses"]', HB + "test_the_registry_records_every_creation_with_its_origin_under_the_cap"),
    _rule("001-39", "hypotheses.accepted", '"pointer": f"/hypotheses/{index}"', '"pointer": "/hypotheses"', HB + "test_the_registry_records_every_creation_with_its_origin_under_the_cap"),
    _rule("001-40", "hypotheses.builder", "            if not issues:\n", "            if True:\n", HB + "test_an_invalid_batch_is_rejected_whole"),
    _rule("001-41", "common", '"call": None if call is None else call.as_json()', '"call": None', IB + "test_a_cut_reply_is_an_error_that_keeps_the_raw_call"),
    _rule("001-42", "hypotheses.builder", "if rejection_of(self._store, head, _PHASE, attempt) is not None:", "if False:", HB + "test_an_invalid_batch_is_rejected_whole"),
    _rule("001-43", "hypotheses.accepted", "    if found:\n", "    if False:\n", HB + "test_declared_hypotheses_without_creation_history_are_refused"),
    _rule("001-44", "hypotheses.builder", "            text: texts.contents[SUMMARY],\n        }\n", '            text: texts.contents[SUMMARY],\n        }\n        self._store.commit(head, Change(event="early", put={text: put.pop(text)}))\n', HB + "test_three_generations_and_the_pointers_of_the_contract"),
    _rule("001-45", "common", "errors/{attempt_hash(attempt_id)}.json", "rejected/{attempt_hash(attempt_id)}.json", HB + "test_an_invalid_batch_is_rejected_whole"),
    _rule("001-46", "hypotheses.builder", '"GENERATING_HYPOTHESES"', '"INVESTIGATING_HYPOTHESES"', HB + "test_three_generations_and_the_pointers_of_the_contract"),
    _rule("001-47", "common", '"deferred": DispatchStatus.DEFERRED', '"deferred": DispatchStatus.ERROR', HB + "test_unreachable_infrastructure_is_distinct_from_invalid_answers"),
    _rule("001-48", "hypotheses.builder", 'if outcome.status == "invalid":', 'if outcome.status != "answered":', HB + "test_unreachable_infrastructure_is_distinct_from_invalid_answers"),
    _rule("001-49", "common", "overlay = Overlay(kind, phase.value, code, message, not_before)", 'overlay = Overlay(kind, "interpretation", code, message, not_before)', HB + "test_unreachable_infrastructure_is_distinct_from_invalid_answers"),
    _rule("001-50", "common", 'if entry is None or entry.sha256 != digest:\n        raise ContractError(\n            "binding_broken"', 'if entry is None:\n        raise ContractError(\n            "binding_broken"', HB + "test_everything_that_was_accepted_is_checked_together"),
    _rule("001-51", "hypotheses.builder", "request = request_for(self._store, head, context.data)", 'request = request_for(self._store, head, context.data).model_copy(update={"stable_messages": head.generation})', HB + "test_a_confirmed_response_survives_a_crash_before_publication"),
    _rule("001-52", "hypotheses.builder", "with self._store.lock(case_id):", "if case_id:", HB + "test_a_busy_case_is_not_dispatched_twice"),
    _rule("001-53", "hypotheses.builder", "return PhaseResult(_PHASE, DispatchStatus.COMPLETED, self._store.commit(head, change))", "return PhaseResult(_PHASE, DispatchStatus.COMPLETED, self._store.commit(self._store.latest(head.case_id), change))", HB + "test_a_concurrently_stale_result_is_refused"),
    _rule("001-54", "common", "if path is None or entry is None or declared.get(path) != entry.sha256:", "if False:", HB + "test_deleting_a_pointer_never_brings_a_second_batch"),
    _rule("001-55", "interpretation.context", "    if len(data) > limit:\n", "    if False:\n", HB + "test_limits_refuse_and_never_truncate"),
    _rule("001-56", "hypotheses.policy", "if len(bindings) > limit:", "if False:", HB + "test_prior_generations_can_be_excluded_and_are_never_truncated"),
    _rule("001-57", "hypotheses.rules", "if not scope.minimum <= len(candidates) <= scope.maximum:", "if not scope.minimum <= len(candidates):", HR + "test_the_number_of_candidates_lies_within_the_policy"),
    _rule("001-58", "hypotheses.accepted", "for name, expected in (", "for name, expected in () and (", HB + "test_everything_that_was_accepted_is_checked_together"),
    _rule("001-59", "markdown", 'return f"\\\\{literal}"', "return literal", "test_markdown.py::test_leading_marks_start_nothing"),
    _rule("001-60", "common", "    if invalid_attempts(head, phase) < limit:\n        return None\n", "    if invalid_attempts(head, phase) < limit + 99:\n        return None\n", HB + "test_invalid_answers_are_bounded_then_the_case_is_blocked"),
)  # fmt: skip

SEED_003: tuple[Rule, ...] = (
    _rule("003-01", "planning.context", "{1: CONTRACT_V1, 2: CONTRACT_V2}", "{1: CONTRACT_V1, 2: CONTRACT_V1}", PJ + "test_one_call_serves_both_phases"),
    _rule("003-02", "planning.start", "VERSION = 2\n", "VERSION = 1\n", PJ + "test_the_context_names_the_version_and_the_policy_is_pinned_before_the_call"),
    _rule("003-03", "planning.adoption", "PlannedCandidate if version >= 2 else PlannedCandidateV1", "PlannedCandidate", PV + "test_an_interrupted_v1_package_resumes_without_a_call_to_equal_bytes"),
    _rule("003-04", "planning.chain", "if self.version < 2 or len(chain.calls)", "if len(chain.calls)", PV + "test_v1_knows_no_statement_repair"),
    _rule("003-05", "interpretation.rules", "        elif source_id not in allowed:", "        elif False:", IR + "test_each_category_takes_only_its_source_types_in_schema_and_check"),
    _rule("003-06", "schema", 'close_ids(array["items"], "source_ids", ids, minimum=1)', "pass", IR + "test_each_category_takes_only_its_source_types_in_schema_and_check"),
    _rule("003-07", "schema", 'array["maxItems"] = 0', "pass", IR + "test_without_an_allowed_source_the_category_must_stay_empty"),
    _rule("003-08", "interpretation.rules", '"tester_assumptions": frozenset({SourceType.TESTER_ASSUMPTION})', '"tester_assumptions": frozenset({SourceType.TESTER_ASSUMPTION, SourceType.COMMENT})', IR + "test_the_table_of_source_types_is_the_one_of_the_contract"),
    _rule("003-09", "planning.contract", "premises: Annotated[tuple[Premise, ...], Field(min_length=1)]", "premises: tuple[Premise, ...] = ()", PP + "test_premises_are_part_of_the_wire_contract"),
    _rule("003-10", "planning.rules", "if not premise.source_ids and not premise.interpretation_paths:", "if False:", PP + "test_a_grounded_premise_cites_what_the_proposal_declares"),
    _rule("003-11", "planning.rules", "source is not None and source.type is SourceType.IMPLEMENTATION_REFERENCE", "False", PP + "test_an_unread_reference_is_no_read_proof"),
    _rule("003-12", "planning.rules", "            if reference not in declared:", "            if False:", PP + "test_a_grounded_premise_cites_what_the_proposal_declares"),
    _rule("003-13", "planning.rules", "    if issues:\n        return None, issues\n", "", PP + "test_a_path_to_no_statement_is_refused"),
    _rule("003-14", "planning.rules", "tuple(by_pointer[pointer] for pointer in planned.interpretation_paths)", "tuple(sorted(by_pointer[pointer] for pointer in planned.interpretation_paths))", PP + "test_paths_are_resolved_to_ids_and_premises_stay_behind"),
    _rule("003-15", "planning.adoption", "    issues += check_premises(planned, scope.sources, path)\n", "", PJ + "test_bad_candidates_never_cost_a_valid_interpretation"),
    _rule("003-16", "common", '"validation_issues": [issue.model_dump(mode="json") for issue in issues]', '"validation_issues": []', PC + "test_a_local_fault_is_repaired_locally"),
    _rule("003-17", "planning.places", '        "source_class",\n', "", PL + "test_a_local_fault_has_the_place_of_its_statement_or_field"),
    _rule("003-18", "planning.places", '        "source_unknown",\n', "", PL + "test_a_local_fault_has_the_place_of_its_statement_or_field"),
    _rule("003-19", "planning.places", '        "schema",\n', "", PL + "test_a_missing_field_is_that_field"),
    _rule("003-20", "planning.places", '        "entity_provenance",\n', "", PL + "test_a_local_fault_has_the_place_of_its_statement_or_field"),
    _rule("003-21", "planning.places", '        "lookup_certainty",\n', "", PL + "test_a_local_fault_has_the_place_of_its_statement_or_field"),
    _rule("003-22", "planning.places", "        if key is None:\n            return None\n", "        if key is None:\n            continue\n", PL + "test_one_unlocatable_issue_makes_localisation_unsafe"),
    _rule("003-23", "planning.places", "if not 0 < len(found) <= limit:", "if not 0 < len(found):", PL + "test_too_many_places_are_not_patched"),
    _rule("003-24", "planning.places", "        if patch.path not in wanted:", "        if False:", PL + "test_a_foreign_missing_or_doubled_path_is_refused"),
    _rule("003-25", "planning.places", "for path in wanted if path not in seen", "for path in wanted if False", PL + "test_a_foreign_missing_or_doubled_path_is_refused"),
    _rule("003-26", "planning.places", "elif patch.value is None and not wanted[patch.path].may_be_null:", "elif False:", PL + "test_a_field_that_must_be_there_cannot_be_removed"),
    _rule("003-27", "planning.places", "key=lambda item: item.index or 0, reverse=True", "key=lambda item: item.index or 0", PL + "test_deletions_run_from_the_highest_index_down"),
    _rule("003-28", "planning.places", "            result[place.field][place.index] = value\n", "            result[place.field][place.index].update(value)\n            result[place.field][place.index].setdefault('source_ids', []).sort(reverse=True)\n            result[place.field][place.index]['text'] = raw[place.field][place.index]['text']\n", PL + "test_a_patch_replaces_the_whole_statement"),
    _rule("003-29", "planning.places", "        return (None if issues else decoded), issues", "        return decoded, ()", PC + "test_the_chain_is_bounded_and_then_the_whole_is_asked_for"),
    _rule("003-30", "planning.context", 'if item["id"] in needed]', "]", PC + "test_the_repair_request_carries_only_what_the_correction_needs"),
    _rule("003-31", "planning.context", '"declared": _declared(raw, wire)', '"declared": []', PC + "test_the_repair_request_carries_only_what_the_correction_needs"),
    _rule("003-32", "planning.context", '        section("binding", {"source_call": source.as_json()}),\n        section("repair", compress(_repair_data(case, raw, places, positions))),\n', '        section("binding", {"source_call": source.as_json()}),\n        section("repair", compress({**_repair_data(case, raw, places, positions), "call": source.as_json()})),\n', PC + "test_the_repair_request_carries_only_what_the_correction_needs"),
    _rule("003-33", "planning.compression", "number > 1 and len(text) >= MINIMUM", "False", PP + "test_compression_says_long_texts_once_and_loses_nothing"),
    _rule("003-34", "planning.reviews", "    if review is None:\n        return unclear\n", "    if review is None:\n        return position\n", PJ + "test_a_missing_or_malformed_review_block_discards_no_valid_patch"),
    _rule("003-35", "planning.reviews", "    if not inputs_unchanged(position.wire, before, after):\n        return unclear\n", "", PP + "test_retain_counts_only_while_every_declared_input_is_unchanged"),
    _rule("003-36", "planning.rules", "return canonical_json(old) == canonical_json(new)", "return True", PP + "test_content_at_the_pointer_counts_not_its_existence"),
    _rule("003-37", "planning.reviews", "if review.decision is Decision.REPLACE and review.replacement is not None:", "if False:", PP + "test_replace_takes_the_new_proposal_whole"),
    _rule("003-38", "planning.reviews", "if review.decision is not Decision.RETAIN or review.replacement is not None:", "if False:", PP + "test_anything_but_a_clear_review_leaves_the_position_unclear"),
    _rule("003-39", "planning.adoption", 'issues.extend(validate(complete, scope, "/hypotheses"))', "pass", PJ + "test_bad_candidates_never_cost_a_valid_interpretation"),
    _rule("003-40", "planning.adoption", "issues += check_candidate(candidate, number - 1, scope, path)", "pass", PJ + "test_a_replacement_passes_every_gate_again"),
    _rule("003-41", "planning.chain", 'decode(Patches, {"patches": call.answer.get("patches")})', "decode(Patches, call.answer)", PJ + "test_a_missing_or_malformed_review_block_discards_no_valid_patch"),
    _rule("003-42", "planning.chain", "        answer, issues = inspect(chain.raw, self.case)\n", "        answer, issues = inspect(chain.raw, self.case)\n        if any(p.status.value == 'unclear' for p in chain.positions or ()):\n            answer, issues = None, (_issue('/hypotheses', 'review_unclear', 'unclear'),)\n", PJ + "test_an_unclear_candidate_leaves_the_interpretation_accepted_and_the_others_locked"),
    _rule("003-43", "hypotheses.context", '"joint_retained": [] if retained is None else retained.as_json()', '"joint_retained": []', PJ + "test_an_unclear_candidate_leaves_the_interpretation_accepted_and_the_others_locked"),
    _rule("003-44", "hypotheses.context", '            constant(retained.kept[position].model_dump(mode="json")) if position in retained.kept else item\n', "            item\n", PJ + "test_an_unclear_candidate_leaves_the_interpretation_accepted_and_the_others_locked"),
    _rule("003-45", "hypotheses.accepted", "if position > len(candidates) or candidates[position - 1] != candidate:", "if False:", PJ + "test_an_unclear_candidate_leaves_the_interpretation_accepted_and_the_others_locked"),
    _rule("003-46", "hypotheses.accepted", "if positions is not None and len(candidates) != positions:", "if False:", PJ + "test_an_unclear_candidate_leaves_the_interpretation_accepted_and_the_others_locked"),
    _rule("003-47", "planning.adoption", "if positions[n - 1].status in _REVIEWED", "if positions", PJ + "test_bad_candidates_never_cost_a_valid_interpretation"),
    _rule("003-48", "calls", '        "phase": phase.value,\n        "attempt_id": attempt_id,\n', '        "phase": phase.value,\n', PC + "test_a_call_of_another_attempt_is_refused_even_when_it_is_bound"),
    _rule("003-49", "planning.chain", 'if places is None or [item.path for item in places] != repair["places"]:', "if places is None:", PC + "test_the_chain_is_verified_on_every_read"),
    _rule("003-50", "planning.chain", 'if not 0 < len(bound) <= self._policy.get("max_repairs", 0) + 1:', "if not bound:", PC + "test_an_empty_or_too_deep_chain_is_refused"),
    _rule("003-51", "planning.chain", "if before is not None and recorded >= before:", "if False:", PC + "test_a_chain_that_refers_to_itself_is_refused"),
    _rule("003-52", "planning.chain", '> self._policy["max_repairs"]', "> 99", PC + "test_the_chain_is_bounded_and_then_the_whole_is_asked_for"),
    _rule("003-53", "planning.chain", "        request = repair_request(\n            self.case, base,", '        request = repair_request(\n            self.case, base.model_copy(update={"limits": RequestLimits(deadline_s=self.head.generation)}),', PC + "test_a_saved_repair_is_reused_after_an_interruption"),
    _rule("003-54", "interpretation.builder", "if spent is not None:", "if False:", PC + "test_repairs_count_against_the_invalid_answers_of_the_revision"),
    _rule("003-55", "interpretation.builder", 'if outcome.status == "invalid":', 'if outcome.status != "answered":', PC + "test_transport_retries_stay_apart_from_corrections"),
    _rule("003-56", "interpretation.builder", '        if self._explicit.planning.mode is not None:\n            wanted["planning_mode"] = self._explicit.planning.mode\n', "", IB + "test_a_changed_mode_is_refused_while_pending_and_ignored_when_done"),
    _rule("003-57", "planning.adoption", "safe = scope.minimum <= len(positions) <= scope.maximum", "safe = True", PJ + "test_a_number_outside_the_policy_is_never_locked"),
)  # fmt: skip

RULES: tuple[Rule, ...] = SEED_001 + SEED_003
