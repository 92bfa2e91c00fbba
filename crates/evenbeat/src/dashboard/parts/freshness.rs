//! How old the data of a job is, against how old it may become.

use evenbeat_core::time::{Duration, Timestamp};
use maud::{Markup, html};

use super::svg::percent;
use crate::dashboard::times::{Distance, Times, brief};

/// Where the deadline stands on the bar, in percent.
const DEADLINE_AT: f64 = 80.0;

/// What a freshness bar shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// The job has no deadline, or is paused.
    NotTracked,
    /// There is a deadline, and no good run yet.
    NeverRan { deadline: Timestamp },
    Tracked {
        /// Start of the last good run, or of the time that counts from.
        since: Timestamp,
        /// The latest start that makes the deadline.
        latest_start: Timestamp,
        deadline: Timestamp,
    },
}

/// The bar. Four fifths of its width are the allowed age; what lies beyond the mark is late.
pub(crate) fn freshness_bar(freshness: Freshness, now: Timestamp) -> Markup {
    let (since, latest_start, deadline) = match freshness {
        Freshness::NotTracked => {
            return html! {
                svg.fb.paused role="img" aria-label="Not tracked" { rect.use y="2" width="80%" height="8" {} }
            };
        }
        Freshness::NeverRan { .. } => {
            return html! {
                svg.fb role="img" aria-label="No good run yet" { rect.nv x="0.5" y="2.5" width="80%" height="7" {} }
            };
        }
        Freshness::Tracked { since, latest_start, deadline } => (since, latest_start, deadline),
    };
    let allowed = (deadline - since).as_millis_f64().max(1.0);
    let share = |at: Timestamp| (at - since).as_millis_f64() / allowed * DEADLINE_AT;
    let used = share(now).clamp(0.0, 100.0);
    let latest = share(latest_start).clamp(0.0, DEADLINE_AT);
    let part = |class: &str, from: f64, to: f64| {
        html! {
            @if from < to { rect class=(class) x=(percent(from)) y="2" width=(percent(to - from)) height="8" {} }
        }
    };
    let age = brief(now - since);
    let left = deadline - now;
    let label = if left.is_negative() {
        format!("Data is {age} old; the deadline was missed by {}", brief(left))
    } else {
        format!("Data is {age} old, allowed {}; deadline in {}", brief(deadline - since), brief(left))
    };
    html! {
        svg.fb role="img" aria-label=(label) {
            title { (label) }
            rect.trk y="2" width="80%" height="8" {}
            (part("use", 0.0, used.min(latest)))
            (part("tgt", latest + 0.8, used.min(DEADLINE_AT)))
            (part("ovr", DEADLINE_AT, used))
            line.dl x1="80%" x2="80%" y1="0" y2="12" {}
        }
    }
}

/// How much time is left, or how late it is.
pub(crate) fn time_left(freshness: Freshness, is_warning: bool, times: &Times) -> Markup {
    let deadline = match freshness {
        Freshness::NotTracked => return html! { span.mut { "not tracked" } },
        Freshness::NeverRan { deadline } | Freshness::Tracked { deadline, .. } => deadline,
    };
    let text = times.distance(deadline, Distance::Left);
    html! {
        @if deadline - times.now < Duration::ZERO { b.c-err { (text) } }
        @else if is_warning { span.c-warn { (text) } }
        @else { span.t2 { (text) } }
    }
}
