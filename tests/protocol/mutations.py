# SPDX-License-Identifier: BSD-3-Clause
"""Seeded faults: small changes of the protocols' text, each of which the random tester has to notice.

A mutation replaces a piece of text that must occur exactly once in its protocol's files, however it is laid out; a
protocol that changes takes its mutations along. `sets` are the machine parameters under which the fault matters, `needs` the
bounds under which `protocol verify` finds it (by default each of SMALL in turn). `harmless` says why it is no fault, which a
complete exploration with these bounds has to confirm.
"""

import re
from dataclasses import dataclass
from pathlib import Path

FILTER_OFF = ("probe_filter.enabled=false",)


@dataclass(frozen=True)
class Mutation:
    """One fault."""

    name: str
    protocol: str
    old: str
    new: str
    what: str
    sets: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    harmless: str = ""

    def apply(self, folder: Path) -> None:
        """Changes the copy of the protocol's files in `folder`."""
        pattern = re.compile(r"\s+".join(re.escape(word) for word in self.old.split()))
        found = [(path, match) for path in sorted(folder.glob(f"{self.protocol}*.sm"))
                 for match in pattern.finditer(path.read_text(encoding="utf-8"))]
        if len(found) != 1:
            raise ValueError(f"{self.name}: its text occurs {len(found)} times in {self.protocol}: adapt the mutation")
        path, match = found[0]
        text = path.read_text(encoding="utf-8")
        path.write_text(text[:match.start()] + self.new + text[match.end():], encoding="utf-8")


def _transition(header: str, *actions: str) -> str:
    """The text of a whole transition."""
    return f"transition({header}) {{\n" + "".join(f"  {a};\n" for a in actions) + "}\n"


_REPLACE = "{Replace_Fetch, Replace_Load, Replace_Store}"

MOESI = (
    Mutation(
        "lost-ack", "MOESI_HTAssist",
        _transition("{I, IS, IM, IU, IW}, {Probe_Read, Probe_Inv}", "an_answerNone", "pn_popNode"),
        _transition("{I, IS, IM, IU, IW}, {Probe_Read, Probe_Inv}", "pn_popNode"),
        "a core without a copy does not answer a probe"),
    Mutation(
        "wrong-next-state", "MOESI_HTAssist",
        "  transition({M, O}, Probe_Read, O) {", "  transition({M, O}, Probe_Read, M) {",
        "an owner that has shared its line still thinks that it may write"),
    Mutation(
        "missing-invalidate", "MOESI_HTAssist",
        _transition("{S1, S}, Store, BM", "vs_start", "em_expectChipsAndMemory", "pt_touchEntry",
                    "bi_broadcastInv", "rm_readMemory", "pq_popRequest"),
        _transition("{S1, S}, Store, BM", "vs_start", "pt_touchEntry", "rm_readMemory", "pq_popRequest"),
        "a store to a shared line leaves the sharers alone"),
    Mutation(
        "upgrade-without-invalidation", "MOESI_HTAssist",
        _transition("{S1, S}, Upgrade, BU", "vs_start", "en_expectChips", "pt_touchEntry", "bi_broadcastInv",
                    "pq_popRequest"),
        _transition("{S1, S}, Upgrade, BU", "vs_start", "pt_touchEntry", "ga_grantWithoutData", "pq_popRequest"),
        "an upgrade is granted while others keep their copies"),
    Mutation(
        "stale-data", "MOESI_HTAssist",
        "if (tbe.HaveData == false || in_msg.Dirty) {", "if (tbe.HaveData == false) {",
        "memory's data wins over a dirty owner's if it comes first", FILTER_OFF),
    Mutation(
        "dropped-write-back", "MOESI_HTAssist",
        _transition("VG, Vic_Data, NP", "wr_writeReceived", "pd_freeEntry", "wt_free", "pr_popResponse", "wk_wake"),
        _transition("VG, Vic_Data, NP", "pd_freeEntry", "wt_free", "pr_popResponse", "wk_wake"),
        "a victim's dirty data never reaches memory"),
    Mutation(
        "missing-filter-update", "MOESI_HTAssist",
        _transition("BU, SrcDone_X, EM", "pn_nodeOwns", "wt_free", "pf_popDone", "wk_wake"),
        _transition("BU, SrcDone_X, EM", "wt_free", "pf_popDone", "wk_wake"),
        "the filter's entry does not name the new owner"),
    Mutation(
        "forgotten-unblock", "MOESI_HTAssist",
        _transition("IS, Done_S, S", "rr_record", "er_readCallback", "ds_sendSrcDoneS", "pl_place", "wt_freeTBE",
                    "pr_popResponse"),
        _transition("IS, Done_S, S", "rr_record", "er_readCallback", "pl_place", "wt_freeTBE", "pr_popResponse"),
        "a reader does not tell the home that it is done"),
    Mutation(
        "missing-back-invalidation", "MOESI_HTAssist",
        _transition(f"{{S, O}}, {_REPLACE}, RC", "vs_start", "hn_collectChips", "bi_broadcastInv", "pd_freeEntry"),
        _transition(f"{{S, O}}, {_REPLACE}, NP", "pd_freeEntry"),
        "the filter forgets a shared line that is still cached"),
    Mutation(
        "late-victim-frees-the-entry", "MOESI_HTAssist",
        "  transition(VG, Vic_Cancel, *) {\n    wt_free;\n", "  transition(VG, Vic_Cancel, NP) {\n    pd_freeEntry;\n    wt_free;\n",
        "a victim that lost its race takes the next owner's entry with it"),
    Mutation(
        "lost-upgrade-race", "MOESI_HTAssist",
        _transition("{SM, OM}, Probe_Inv, IM", "ev_lineLost", "at_answerFromTBE", "lo_loseData", "pn_popNode"),
        _transition("{SM, OM}, Probe_Inv, IM", "ev_lineLost", "at_answerFromTBE", "pn_popNode"),
        "an upgrade whose copy was invalidated goes on with the old data"),
    Mutation(
        "silent-dirty-line", "MOESI_HTAssist",
        "  transition(E, Store, M) {", "  transition(E, Store) {",
        "a store to an exclusive line leaves it clean"),
    Mutation(
        "one-response-too-few", "MOESI_HTAssist",
        "    tbe.Expected := chips() + 1;", "    tbe.Expected := chips();",
        "a requestor goes on before the last response has come", FILTER_OFF),
    Mutation(
        "lost-device-write", "MOESI_HTAssist",
        _transition("PC, Last_Dirty, I", "ha_takeAnswer", "mw_mergeWrite", "wa_writeCollected", "da_sendDmaAck",
                    "wt_free", "pr_popResponse", "wk_wake"),
        _transition("PC, Last_Dirty, I", "ha_takeAnswer", "wa_writeCollected", "da_sendDmaAck", "wt_free",
                    "pr_popResponse", "wk_wake"),
        "a device's bytes are lost where a dirty line comes back",
        needs=("--caches", "2", "--chips", "1", "--no-evict", "--device", "read,part")),
    Mutation(
        "shared-copy-survives-in-the-l3", "MOESI_HTAssist",
        _transition("S, Probe_Inv, C", "vp_startCollecting", "np_noteProbe", "rm_remove", "ak_askCores", "pp_popProbe"),
        _transition("S, Probe_Inv, C", "vp_startCollecting", "np_noteProbe", "ak_askCores", "pp_popProbe"),
        "an L3 answers an invalidating probe and keeps its own copy"),
    Mutation(
        "lost-returned-line", "MOESI_HTAssist",
        _transition("BU, Returned, I", "wr_writeReceived", "wt_free", "pr_popResponse", "wk_wake"),
        _transition("BU, Returned, I", "wt_free", "pr_popResponse", "wk_wake"),
        "a modified line that a load past the caches took from its owner never reaches memory",
        needs=("--caches", "2", "--chips", "2", "--requests", "st,uncached")),
)

MSI = (
    Mutation("msi-lost-ack", "MSI",
             _transition("S, Inv, I", "ev_lineLost", "ia_sendInvAck", "dc_deallocate", "pf_popForward"),
             _transition("S, Inv, I", "ev_lineLost", "dc_deallocate", "pf_popForward"),
             "a sharer does not acknowledge its invalidation"),
    Mutation("msi-wrong-next-state", "MSI",
             "  transition(M, Fwd_GetS, S) {", "  transition(M, Fwd_GetS, M) {",
             "an owner that has shared its line still thinks that it may write"),
    Mutation("msi-stale-data", "MSI",
             _transition("M, PutM, I", "wm_writePutToMemory", "co_clearOwner", "pa_sendPutAck", "pq_popRequest"),
             _transition("M, PutM, I", "co_clearOwner", "pa_sendPutAck", "pq_popRequest"),
             "a write-back never reaches memory"),
    Mutation("msi-kept-copy", "MSI",
             _transition("S, Inv, I", "ev_lineLost", "ia_sendInvAck", "dc_deallocate", "pf_popForward"),
             _transition("S, Inv", "ia_sendInvAck", "pf_popForward"),
             "a sharer acknowledges its invalidation and keeps its copy"),
    Mutation("msi-missing-sharer", "MSI",
             "    getDirectoryEntry(address).Sharers.add(tbe.Requestor);\n", "",
             "the directory does not note a new sharer"),
    Mutation("msi-forgotten-unblock", "MSI",
             "    us_sendUnblockS;\n", "",
             "a reader does not tell the directory that it is done"),
)

ALL = (*MOESI, *MSI)
#: Small machines by protocol, for faults that do not say what they need.
SMALL = {"MSI": (("--caches", "2"), ("--caches", "3")),
         "MOESI_HTAssist": (("--caches", "2", "--chips", "2"), ("--caches", "2"), ("--caches", "3", "--chips", "3"))}
# The two that the short form takes: a hang and a wrong value.
SHORT = ("forgotten-unblock", "missing-filter-update")
