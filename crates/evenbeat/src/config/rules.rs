//! Values that are good by themselves and contradict each other.

use std::ffi::OsStr;
use std::path::Path;

use evenbeat_core::lease::{TimingFault, Timings, TimingsSpec};
use evenbeat_core::nearest::{nearest, shortened};
use evenbeat_core::time::Duration;

use super::fault::{Fault, Place};
use super::kind::{Setting, Trouble};
use super::path::KeyPath;
use super::resolve::Resolved;

/// What the name of the socket's file can have. The address of a socket has room for 107 bytes, and some of them are for
/// the way to its folder, which may be as long as it likes (`socket_path.rs`), and for the process that makes it.
const SOCKET_NAME_BYTES_MAX: usize = 64;

/// Looks at everything; what depends on something broken is left out.
pub(super) fn check(resolved: &mut Resolved) {
    only_this_machine(resolved);
    socket_name(resolved);
    for pool in resolved.names("pools") {
        pool_units(resolved, &pool);
    }
    burst_needs_rate(resolved);
    agenda_is_rebuilt_in_time(resolved);
    lease_timings(resolved);
    plans_exist(resolved);
    unlimited_is(resolved);
}

/// Without tokens there is nothing to tell one caller from another.
fn only_this_machine(resolved: &mut Resolved) {
    let listen = KeyPath::plain("listen");
    if resolved.is_any_broken(std::slice::from_ref(&listen)) {
        return;
    }
    let Some(Setting::Address(address)) = resolved.get(&listen) else { return };
    if address.ip().is_loopback() {
        return;
    }
    let message =
        format!("other machines can reach `{address}`, and this version has no tokens to keep them out");
    let help = format!(
        "listen on `127.0.0.1:{}`, and let a proxy that checks who is calling forward to it",
        address.port()
    );
    let place = resolved.place(&listen);
    resolved.fault(place, &listen, Trouble::new(message, "not only this machine", Some(help)));
}

fn socket_name(resolved: &mut Resolved) {
    let socket = KeyPath::plain("socket");
    if resolved.is_any_broken(&[socket.clone(), KeyPath::plain("data_dir")]) {
        return;
    }
    let Some(Setting::Text(path)) = resolved.get(&socket) else { return };
    let n_bytes = Path::new(path).file_name().map_or(0, OsStr::len);
    if n_bytes <= SOCKET_NAME_BYTES_MAX {
        return;
    }
    let message = format!(
        "the name of the socket's file has {n_bytes} bytes, more than the {SOCKET_NAME_BYTES_MAX} that it can have"
    );
    let help = Some("choose a shorter name; its folder may be as deep as you like".to_owned());
    let place = resolved.place(&socket);
    resolved.fault(place, &socket, Trouble::new(message, "too long", help));
}

fn pool_units(resolved: &mut Resolved, pool: &str) {
    let capacity = KeyPath::named("pools.<name>.capacity", pool);
    let reserved = KeyPath::named("pools.<name>.reserved", pool);
    if resolved.is_any_broken(&[capacity.clone(), reserved.clone()]) {
        return;
    }
    let Some(Setting::Count(units)) = resolved.get(&capacity) else {
        let entry =
            resolved.gathered.entries.iter().find(|(table, name, _)| *table == "pools" && name == pool);
        let place = entry.map_or(Place::Machine, |(.., place)| place.clone());
        let message = format!("the pool `{pool}` has no capacity");
        let help =
            Some("write `capacity`, in units of cost; a job takes 1 unless it says otherwise".to_owned());
        resolved.fault(place, &capacity, Trouble::new(message, "incomplete", help));
        return;
    };
    if let Some(Setting::Count(kept)) = resolved.get(&reserved)
        && units < kept
    {
        let message = format!("`{reserved}` ({kept}) is more than the pool's capacity ({units})");
        let trouble = Trouble::new(message, "more than there is", None);
        between(resolved, &reserved, &[&capacity], trouble);
    }
}

fn burst_needs_rate(resolved: &mut Resolved) {
    let (rate, burst) = (KeyPath::plain("dispatch.start_rate"), KeyPath::plain("dispatch.start_burst"));
    let is_alone = matches!(
        (resolved.get(&rate), resolved.get(&burst)),
        (Some(Setting::Nothing), Some(Setting::Count(_)))
    );
    if is_alone && !resolved.is_any_broken(&[rate, burst.clone()]) {
        let message = "`dispatch.start_burst` works only with `dispatch.start_rate`";
        let help = Some("set `dispatch.start_rate` too, or leave both out".to_owned());
        let place = resolved.place(&burst);
        resolved.fault(place, &burst, Trouble::new(message, "without effect here", help));
    }
}

fn agenda_is_rebuilt_in_time(resolved: &mut Resolved) {
    let (ahead, every) = (KeyPath::plain("agenda.lookahead"), KeyPath::plain("agenda.rebuild_every"));
    if resolved.is_any_broken(&[ahead.clone(), every.clone()]) {
        return;
    }
    if let (Some(Setting::Length(ahead_for)), Some(Setting::Length(rebuilt))) =
        (resolved.get(&ahead), resolved.get(&every))
        && ahead_for < rebuilt
    {
        let message = format!(
            "`agenda.rebuild_every` ({rebuilt}) is longer than `agenda.lookahead` ({ahead_for}): there would be times \
             that nobody looked at"
        );
        between(resolved, &every, &[&ahead], Trouble::new(message, "too long", None));
    }
}

/// The timings, if they are valid together.
pub(super) fn timings(resolved: &Resolved) -> Result<Timings, Vec<TimingFault>> {
    let length = |key| match resolved.plain(key) {
        Some(Setting::Length(length)) => *length,
        _ => Duration::ZERO,
    };
    Timings::new(TimingsSpec {
        heartbeat: length("lease.heartbeat"),
        attempt: length("lease.attempt"),
        self_fence: length("lease.self_fence"),
        stop_bound: length("lease.stop_bound"),
        freeze_bound: length("lease.freeze_bound"),
        window: length("lease.window"),
        probe: length("lease.probe"),
        gap: length("lease.gap"),
        quarantine: length("lease.quarantine"),
        backoff_cap: length("lease.backoff_cap"),
    })
}

fn lease_timings(resolved: &mut Resolved) {
    let lease: Vec<KeyPath> = std::iter::once("lease.profile")
        .chain(super::resolve::timings_of(&TimingsSpec::DEFAULT).map(|(key, _)| key))
        .map(KeyPath::plain)
        .collect();
    if resolved.is_any_broken(&lease) {
        return;
    }
    for fault in timings(resolved).err().unwrap_or_default() {
        let involved: Vec<KeyPath> = involved_in(&fault).iter().map(|key| KeyPath::plain(key)).collect();
        let Some((first, others)) = involved.split_first() else { continue };
        let others: Vec<&KeyPath> = others.iter().collect();
        let help = Some("keep the timings of a profile, or change them together".to_owned());
        let trouble = Trouble::new(format!("timings of `lease`: {fault}"), "does not fit the others", help);
        between(resolved, first, &others, trouble);
    }
}

/// The keys that a broken rule is about, the one that is most likely to be wrong first.
fn involved_in(fault: &TimingFault) -> &'static [&'static str] {
    match fault {
        // Nothing that is read is so short.
        TimingFault::NotPositive { .. } => &["lease.profile"],
        TimingFault::AttemptTooLong { .. } => &["lease.attempt", "lease.heartbeat"],
        TimingFault::SelfFenceTooShort { .. } => &["lease.self_fence", "lease.heartbeat", "lease.attempt"],
        TimingFault::WindowTooShort { .. } => &["lease.window", "lease.self_fence", "lease.stop_bound"],
        TimingFault::FreezeBoundTooLong { .. } => &["lease.freeze_bound", "lease.stop_bound"],
        TimingFault::GapTooLong { .. } => &["lease.gap", "lease.window"],
        TimingFault::GapTooShort { .. } => &["lease.gap", "lease.probe", "lease.attempt"],
        TimingFault::BackoffTooLong { .. } => &["lease.backoff_cap", "lease.attempt", "lease.window"],
        TimingFault::QuarantineTooShort { .. } => &["lease.quarantine", "lease.window"],
    }
}

fn plans_exist(resolved: &mut Resolved) {
    if resolved.is_lost("plans") {
        return;
    }
    let tenants = resolved.names("tenants");
    let tenants = tenants.iter().map(|tenant| KeyPath::named("tenants.<name>.plan", tenant));
    let plans = resolved.names("plans");
    for path in tenants.chain([KeyPath::plain("default_plan")]) {
        let is_said = resolved.is_said(&path) && !resolved.is_any_broken(std::slice::from_ref(&path));
        let Some(Setting::Text(plan)) = resolved.get(&path).filter(|_| is_said) else { continue };
        if plans.contains(plan) {
            continue;
        }
        let message = format!("there is no plan `{}`", shortened(plan));
        let help = match nearest(plan, plans.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let plans: Vec<String> = plans.iter().map(|plan| format!("`{plan}`")).collect();
                format!("the plans are {}; `[plans.NAME]` makes another", plans.join(", "))
            }
        };
        let place = resolved.place(&path);
        resolved.fault(place, &path, Trouble::new(message, "no such plan", Some(help)));
    }
}

/// A plan that is called so and limits something would deceive whoever reads a page.
fn unlimited_is(resolved: &mut Resolved) {
    let limits: Vec<KeyPath> = resolved
        .held
        .iter()
        .filter(|(path, held)| {
            path.pattern.starts_with("plans.")
                && path.name.as_deref() == Some("unlimited")
                && held.setting != Setting::Nothing
        })
        .map(|(path, _)| path.clone())
        .collect();
    for path in limits {
        let place = resolved.place(&path);
        let help = Some("give the plan another name, and set `default_plan` to it".to_owned());
        let message = "the plan `unlimited` can have no limits";
        resolved.fault(place, &path, Trouble::new(message, "a limit", help));
    }
}

/// A fault of several keys together: shown where the first of them was said that was, and beside it the next.
fn between(resolved: &mut Resolved, first: &KeyPath, others: &[&KeyPath], trouble: Trouble) {
    let said: Vec<&KeyPath> =
        std::iter::once(first).chain(others.iter().copied()).filter(|path| resolved.is_said(path)).collect();
    let blamed = said.first().copied().unwrap_or(first);
    let fault = Fault {
        other: said.get(1).map(|path| resolved.place(path)),
        ..Fault::new(resolved.place(blamed), Some(blamed.to_string()), trouble)
    };
    resolved.gathered.faults.push(fault);
}
