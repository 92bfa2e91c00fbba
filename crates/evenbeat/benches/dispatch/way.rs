//! The ways of choosing that are compared.

use evenbeat_core::engine::{DispatchSettings, Order};

/// One way of choosing who goes first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    pub(crate) code: &'static str,
    pub(crate) dispatch: DispatchSettings,
}

/// Ours comes first, what it is compared with last.
pub(crate) fn ways() -> [Way; 4] {
    let ours = DispatchSettings::default();
    [
        Way { name: "latest start", code: "ours", dispatch: ours },
        Way {
            name: "  no look-ahead",
            code: "no_lookahead",
            dispatch: DispatchSettings { lookahead: false, ..ours },
        },
        Way { name: "first come", code: "first_come", dispatch: plain(Order::FirstCome) },
        Way { name: "cron order", code: "by_minute", dispatch: plain(Order::ByMinute) },
    ]
}

/// An order and nothing else: no share for late work, no look-ahead.
pub(crate) fn plain(order: Order) -> DispatchSettings {
    DispatchSettings { order, lookahead: false, late_share: 100, ..DispatchSettings::default() }
}
