//! The preview of a rebalance: what changes, what is checked, what moves and what stays. Nothing has changed yet.

use std::collections::BTreeMap;

use evenbeat_core::placement::KeptReason;
use evenbeat_core::rights::Role;
use evenbeat_core::store::PlanId;
use evenbeat_core::time::Duration;
use maud::{Markup, html};

use super::charts::change_chart;
use crate::dashboard::parts::{form_token, icon, job_link};
use crate::dashboard::times::{Times, brief, count, counted};
use crate::dashboard::user::{PageUser, PageViewer};
use crate::intake::{ListedMove, PlanSummary};
use crate::views::analysis::shown_score;
use crate::views::schedule::{FleetCapacity, whole};

/// Why people see another preview than the one they confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replaced {
    /// Jobs were changed since.
    Old,
    /// It was applied, or has expired.
    Gone,
}

impl Replaced {
    /// The word in the address.
    pub(super) fn word(self) -> &'static str {
        match self {
            Replaced::Old => "changed",
            Replaced::Gone => "gone",
        }
    }

    pub(super) fn of(word: &str) -> Option<Replaced> {
        [Replaced::Old, Replaced::Gone].into_iter().find(|it| it.word() == word)
    }

    fn text(self) -> &'static str {
        match self {
            Replaced::Old => {
                "Jobs were changed after the last preview, so it was not applied. This is a new one."
            }
            Replaced::Gone => {
                "The last preview was applied already or is older than an hour; it was not applied again. This is a new one."
            }
        }
    }
}

/// A plan that is looked at.
#[derive(Debug)]
pub(super) struct PreviewDialog<'a> {
    pub(super) id: PlanId,
    pub(super) plan: &'a PlanSummary,
    /// The schedules of the jobs that are listed, in words.
    pub(super) schedules: BTreeMap<String, String>,
    pub(super) capacity: FleetCapacity,
    pub(super) replaced: Option<Replaced>,
}

impl PreviewDialog<'_> {
    /// The dialog. Without scripts it stands over the page all the same, and its buttons are links and forms.
    pub(super) fn show(&self, user: &PageUser<PageViewer>, times: &Times) -> Markup {
        let plan = self.plan;
        let n_jobs = plan.n_moves + plan.n_stays();
        let moves = counted(plan.n_moves as u64, "job");
        let title = if plan.n_moves == 0 {
            "Nothing to move".to_owned()
        } else {
            let verb = format!("Rebalance moves {}", count(plan.n_moves as u64));
            format!("{verb} of {}", counted(n_jobs as u64, "job"))
        };
        html! {
            dialog.dlg.tall[8 < plan.n_moves] id="rebal" open data-show data-large aria-labelledby="rb-h" aria-describedby="rb-d" {
                div.dlg-h {
                    div {
                        h2 id="rb-h" tabindex="-1" autofocus { (title) }
                        p.sub id="rb-d" {
                            @if plan.n_moves == 0 { "Every job is well where it is, or has to stay there for now. Nothing was changed." }
                            @else { "Nothing has changed yet. Each moved job keeps its interval and gets a new start time." }
                        }
                    }
                    span.sp {}
                    a.btn.bare.ico href="/schedule" data-close aria-label="Close" { (icon("x")) }
                }
                div.dlg-b {
                    @if let Some(replaced) = self.replaced {
                        div.banner.warn role="status" { (icon("warning")) span { (replaced.text()) } }
                    }
                    (self.figures())
                    @if 0 < plan.n_moves {
                        (change_chart(plan, times))
                        (chart_legend())
                        (self.checks())
                        a.skip.rb-skip href="#rb-cancel" { "Skip the lists" }
                        div.tabs.rb-tabs role="tablist" aria-label="Preview lists" {
                            button type="button" role="tab" id="t-mv" aria-controls="mv" aria-selected="true" data-pane="mv" {
                                "Moves " span.n { (count(plan.n_moves as u64)) }
                            }
                            button type="button" role="tab" id="t-sk" aria-controls="sk" aria-selected="false" tabindex="-1" data-pane="sk" {
                                "Stays " span.n { (count(plan.n_stays() as u64)) }
                            }
                        }
                        div.scroll id="mv" role="tabpanel" tabindex="0" aria-labelledby="t-mv" { (self.moves(times)) }
                        div.scroll id="sk" role="tabpanel" tabindex="0" aria-labelledby="t-sk" { (self.stays()) }
                    } @else {
                        div.scroll { (self.stays()) }
                    }
                }
                form.dlg-f method="post" action="/schedule/rebalance" {
                    (form_token(&user.session))
                    input type="hidden" name="plan" value=(self.id);
                    span.mut {
                        "Computed " (times.exact(plan.made_at())) ". "
                        @if plan.n_moves == 0 {}
                        @else if user.may(Role::Operator) { "If a job is changed first, you see a new preview." }
                        @else { "Moving jobs needs the role operator." }
                    }
                    span.sp {}
                    @if 0 < plan.n_moves && user.may(Role::Operator) {
                        a.btn id="rb-cancel" href="/schedule" data-close { "Cancel" }
                        button.btn.pri type="submit" { "Move " (moves) }
                    } @else {
                        a.btn id="rb-cancel" href="/schedule" data-close { "Close" }
                    }
                }
            }
        }
    }

    fn figures(&self) -> Markup {
        let (before, after) = (&self.plan.before, &self.plan.after);
        let running = before
            .most_running
            .zip(after.most_running)
            .map(|(it, other)| (count(whole(it)), count(whole(other))));
        html! {
            dl.delta {
                div { dt { "Evenness" } dd { span.from { (shown_score(before.score)) " →" } " " (shown_score(after.score)) } }
                div { dt { "Busiest slot" } dd { span.from { (count(before.peak().1.into())) " →" } " " (counted(after.peak().1.into(), "start")) } }
                div { dt { "Most running at once" } dd {
                    @if let Some((before, after)) = &running { span.from { (before) " →" } " " (after) " of " (count(self.capacity.units)) }
                    @else { span.from { "not known yet" } }
                } }
                div { dt { "Stay where they are" } dd { (counted(self.plan.n_stays() as u64, "job")) } }
            }
        }
    }

    fn checks(&self) -> Markup {
        let plan = self.plan;
        html! {
            div.chk {
                span {
                    @match (plan.n_past_latest_start, &plan.tightest) {
                        (0, Some(tightest)) => {
                            (icon("ok")) "No deadline is missed by moving. Tightest: " (tightest.key) ", "
                            @match tightest.room() {
                                Some(room) if !room.is_negative() => { (brief(room)) " before its latest start" }
                                Some(room) => { "already " (brief(room)) " past its latest start" }
                                None => { "without a deadline" }
                            }
                        }
                        (0, None) => { (icon("ok")) "No deadline is missed by moving: none of these jobs has one" }
                        (n, tightest) => {
                            (icon("warning"))
                            (counted(n as u64, "job")) @if n == 1 { " moves" } @else { " move" }
                            " past the latest start of the pending run; the deadline moves along"
                            @if let Some((key, room)) = tightest.as_ref().and_then(|it| Some((&it.key, it.room()?))) {
                                ". Furthest: " (key) ", " (brief(room))
                            }
                        }
                    }
                }
                span {
                    @if plan.n_in_blackout == 0 { (icon("ok")) "No blackout is touched" }
                    @else { (icon("warning")) (counted(plan.n_in_blackout as u64, "moved job")) " will wait for the end of a blackout" }
                }
            }
        }
    }

    fn moves(&self, times: &Times) -> Markup {
        let plan = self.plan;
        let n_more = plan.n_moves.saturating_sub(plan.moves.len());
        html! {
            h3.rb-n { "Moves" }
            table.tbl.fix.mvt {
                colgroup { col; col.m1.c-ev; col.m2; col.m3; col.m6; col.m4; col.m5.c-mg; }
                thead {
                    tr {
                        th { "Job" } th.c-ev { "Schedule" }
                        th.num { "Now" } th { span.sr { "to" } } th.nw { "Then, " (times.zone_name()) }
                        th.num { "Shift" } th.num.c-mg { "Room before latest start" }
                    }
                }
                tbody { @for it in &plan.moves { (self.one_move(it, times)) } }
            }
            @if 0 < n_more {
                p.mut.rb-more { "And " (counted(n_more as u64, "more job")) ". " code { "evenbeat rebalance --preview --all" } " lists every one." }
            }
        }
    }

    fn one_move(&self, it: &ListedMove, times: &Times) -> Markup {
        let shift = it.new_time() - it.old_time();
        let schedule = self.schedules.get(&it.key).map_or("", String::as_str);
        html! {
            tr {
                td.ell.m-j { (job_link(&it.key)) }
                td.ell.t2.c-ev title=(schedule) { (schedule) }
                td.num.c-now.t2 { (times.clock(it.old_time())) }
                td.c-arr.mut { "→" }
                td.nw.m-n { b { (times.clock(it.new_time())) } }
                td.nw.t2.num.m-s { (shift_text(shift)) }
                td.nw.t2.num.c-mg { (room_text(it.room())) }
            }
        }
    }

    fn stays(&self) -> Markup {
        let plan = self.plan;
        html! {
            h3.rb-n { "Stays" }
            table.tbl.stt {
                thead { tr { th { "Reason" } th.c-ev { span.sr { "What it means" } } th.num { "Jobs" } } }
                tbody {
                    @if 0 < plan.n_unchanged {
                        tr { td { "Already well placed" } td.t2.c-ev { "moving them would gain nothing" } td.num { (count(plan.n_unchanged as u64)) } }
                    }
                    @for (reason, n) in plan.kept() {
                        @let (title, note) = reason_text(reason);
                        tr { td { (title) } td.t2.c-ev { (note) } td.num { (count(n as u64)) } }
                    }
                    @if plan.n_stays() == 0 { tr { td.mut colspan="3" { "No job stays." } } }
                }
            }
        }
    }
}

fn chart_legend() -> Markup {
    html! {
        div.lgd.rb-l {
            span { svg viewBox="0 0 14 10" aria-hidden="true" { rect.b2 width="14" height="10" {} rect.sky width="14" height="2" {} } "unchanged" }
            span { svg viewBox="0 0 14 10" aria-hidden="true" { rect.b width="14" height="10" {} } "arrives" }
            span { svg viewBox="0 0 14 10" aria-hidden="true" { rect.bgh x=".5" y=".5" width="13" height="9" {} } "leaves" }
            span.readout id="rc" aria-live="polite" {}
        }
    }
}

/// Why a job stays, and what that means.
pub(super) fn reason_text(reason: KeptReason) -> (&'static str, &'static str) {
    match reason {
        KeptReason::JobRunning => ("Running now", "a job does not move while it runs"),
        KeptReason::ProtectionWindow => {
            ("Starts soon, or is overdue", "too close to move: a quarter of the interval, at most 30 min")
        }
        KeptReason::PlacementCooldown => {
            ("Placed or moved less than 1 h ago", "it is left alone for an hour")
        }
        KeptReason::PinnedSchedule => ("Fixed time", "you set the time, and Evenbeat keeps it"),
        KeptReason::Paused => ("Paused", "it starts nothing"),
        KeptReason::Waiting => ("Waits for a retry or a blackout", "that decides its next start"),
    }
}

fn shift_text(shift: Duration) -> String {
    match shift {
        Duration::ZERO => "same time".to_owned(),
        earlier if earlier.is_negative() => format!("{} earlier", brief(earlier)),
        later => format!("{} later", brief(later)),
    }
}

fn room_text(room: Option<Duration>) -> String {
    match room {
        None => "no deadline".to_owned(),
        Some(past) if past.is_negative() => format!("{} past it", brief(past)),
        Some(room) => brief(room),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_and_room_say_their_direction() {
        let minutes = Duration::from_mins;
        assert_eq!(
            [minutes(15), minutes(-75), Duration::ZERO].map(shift_text),
            ["15m later", "1h 15m earlier", "same time"]
        );
        assert_eq!(
            [Some(minutes(54)), Some(minutes(-12)), None].map(room_text),
            ["54m", "12m past it", "no deadline"]
        );
    }

    #[test]
    fn the_word_in_an_address_comes_back() {
        for it in [Replaced::Old, Replaced::Gone] {
            assert_eq!(Replaced::of(it.word()), Some(it));
        }
        assert_eq!(Replaced::of("x"), None);
    }
}
