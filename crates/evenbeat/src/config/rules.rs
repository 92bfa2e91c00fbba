//! Checks values that are valid on their own but conflict with each other.

use std::ffi::OsStr;
use std::path::Path;

use evenbeat_core::lease::{TimingFault, Timings, TimingsSpec};
use evenbeat_core::nearest::{nearest, shortened};
use evenbeat_core::time::Duration;

use super::alert_rules;
use super::error::{ConfigError, Location};
use super::http_endpoint::HttpEndpoint;
use super::path::ConfigPath;
use super::resolve::Resolution;
use super::value_type::{Setting, ValueError};
use super::values::MetricsJobs;

/// Longest file name of the socket. A socket address has room for 107 bytes, and some of them are needed for the way to
/// its directory, which may be of any length (`socket_path.rs`), and for a temporary name while it is created.
const SOCKET_NAME_BYTES_MAX: usize = 64;

/// Checks all rules, except those that depend on an invalid value.
pub(super) fn check(resolved: &mut Resolution) {
    trust_needs_a_closed_machine(resolved);
    tls_needs_both_files(resolved);
    socket_name(resolved);
    for pool in resolved.names("pools") {
        pool_units(resolved, &pool);
    }
    burst_needs_rate(resolved);
    agenda_is_rebuilt_in_time(resolved);
    lease_timings(resolved);
    plans_exist(resolved);
    unlimited_is(resolved);
    jobs_with_metrics(resolved);
    traces_endpoint(resolved);
    alert_rules::check(resolved);
}

/// A proxy on this machine comes from a loopback address, so trusting these would open the server to all of its users.
fn trust_needs_a_closed_machine(resolved: &mut Resolution) {
    let (loopback, proxies) = (ConfigPath::plain("auth.loopback"), ConfigPath::plain("auth.trusted_proxies"));
    if resolved.is_any_broken(&[loopback.clone(), proxies.clone()]) {
        return;
    }
    let is_trusted = matches!(resolved.get(&loopback), Some(Setting::Word("trust")));
    let has_proxies = matches!(resolved.get(&proxies), Some(Setting::Texts(it)) if !it.is_empty());
    if is_trusted && has_proxies {
        let message = "`auth.loopback = \"trust\"` does not go with `auth.trusted_proxies`: every user of the proxy would have \
                       all rights";
        let help = Some("remove one of them".to_owned());
        between(resolved, &loopback, &[&proxies], ValueError::new(message, "trusts everyone", help));
    }
}

fn tls_needs_both_files(resolved: &mut Resolution) {
    let (cert, key) = (ConfigPath::plain("tls.cert"), ConfigPath::plain("tls.key"));
    if resolved.is_any_broken(&[cert.clone(), key.clone()]) {
        return;
    }
    let is_set = |path: &ConfigPath| matches!(resolved.get(path), Some(Setting::Text(_)));
    let (set, missing) = match (is_set(&cert), is_set(&key)) {
        (true, false) => (cert, "tls.key"),
        (false, true) => (key, "tls.cert"),
        _ => return,
    };
    let location = resolved.location(&set);
    let message = format!("`{set}` works only with `{missing}`");
    let help = Some(format!("set `{missing}` too, or remove both"));
    resolved.report(location, &set, ValueError::new(message, "incomplete", help));
}

fn socket_name(resolved: &mut Resolution) {
    let socket = ConfigPath::plain("socket");
    if resolved.is_any_broken(&[socket.clone(), ConfigPath::plain("data_dir")]) {
        return;
    }
    let Some(Setting::Text(path)) = resolved.get(&socket) else { return };
    let n_bytes = Path::new(path).file_name().map_or(0, OsStr::len);
    if n_bytes <= SOCKET_NAME_BYTES_MAX {
        return;
    }
    let message = format!(
        "the file name of the socket has {n_bytes} bytes, more than the {SOCKET_NAME_BYTES_MAX} allowed"
    );
    let help = Some("choose a shorter file name; the length of its directory does not matter".to_owned());
    let location = resolved.location(&socket);
    resolved.report(location, &socket, ValueError::new(message, "too long", help));
}

fn pool_units(resolved: &mut Resolution, pool: &str) {
    let capacity = ConfigPath::named("pools.<name>.capacity", pool);
    let reserved = ConfigPath::named("pools.<name>.reserved", pool);
    if resolved.is_any_broken(&[capacity.clone(), reserved.clone()]) {
        return;
    }
    let Some(Setting::Count(units)) = resolved.get(&capacity) else {
        let entry =
            resolved.collected.entries.iter().find(|(table, name, _)| *table == "pools" && name == pool);
        let location = entry.map_or(Location::Machine, |(.., location)| location.clone());
        let message = format!("pool `{pool}` has no capacity");
        let help = Some("set `capacity`, in units of cost; a job costs 1 by default".to_owned());
        resolved.report(location, &capacity, ValueError::new(message, "incomplete", help));
        return;
    };
    if let Some(Setting::Count(kept)) = resolved.get(&reserved)
        && units < kept
    {
        let message = format!("`{reserved}` ({kept}) is more than the pool's capacity ({units})");
        let error = ValueError::new(message, "more than the capacity", None);
        between(resolved, &reserved, &[&capacity], error);
    }
}

fn burst_needs_rate(resolved: &mut Resolution) {
    let (rate, burst) = (ConfigPath::plain("dispatch.start_rate"), ConfigPath::plain("dispatch.start_burst"));
    let is_alone = matches!(
        (resolved.get(&rate), resolved.get(&burst)),
        (Some(Setting::Nothing), Some(Setting::Count(_)))
    );
    if is_alone && !resolved.is_any_broken(&[rate, burst.clone()]) {
        let message = "`dispatch.start_burst` works only with `dispatch.start_rate`";
        let help = Some("set `dispatch.start_rate` too, or remove both".to_owned());
        let location = resolved.location(&burst);
        resolved.report(location, &burst, ValueError::new(message, "without effect here", help));
    }
}

fn agenda_is_rebuilt_in_time(resolved: &mut Resolution) {
    let (ahead, every) = (ConfigPath::plain("agenda.lookahead"), ConfigPath::plain("agenda.rebuild_every"));
    if resolved.is_any_broken(&[ahead.clone(), every.clone()]) {
        return;
    }
    if let (Some(Setting::Length(ahead_for)), Some(Setting::Length(rebuilt))) =
        (resolved.get(&ahead), resolved.get(&every))
        && ahead_for < rebuilt
    {
        let message = format!(
            "`agenda.rebuild_every` ({rebuilt}) is longer than `agenda.lookahead` ({ahead_for}): the agenda would run out \
             before it is rebuilt"
        );
        between(resolved, &every, &[&ahead], ValueError::new(message, "too long", None));
    }
}

/// The timings, if they are valid together.
pub(super) fn timings(resolved: &Resolution) -> Result<Timings, Vec<TimingFault>> {
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

fn lease_timings(resolved: &mut Resolution) {
    let lease: Vec<ConfigPath> = std::iter::once("lease.profile")
        .chain(super::resolve::timings_of(&TimingsSpec::DEFAULT).map(|(key, _)| key))
        .map(ConfigPath::plain)
        .collect();
    if resolved.is_any_broken(&lease) {
        return;
    }
    for fault in timings(resolved).err().unwrap_or_default() {
        let involved: Vec<ConfigPath> =
            involved_in(&fault).iter().map(|key| ConfigPath::plain(key)).collect();
        let Some((first, others)) = involved.split_first() else { continue };
        let others: Vec<&ConfigPath> = others.iter().collect();
        let help = Some("use the timings of a profile, or change them together".to_owned());
        let error =
            ValueError::new(format!("timings of `lease`: {fault}"), "conflicts with the others", help);
        between(resolved, first, &others, error);
    }
}

/// The keys that a violated rule is about, starting with the one that is most likely wrong.
fn involved_in(fault: &TimingFault) -> &'static [&'static str] {
    match fault {
        // The reader accepts no duration this short.
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

fn plans_exist(resolved: &mut Resolution) {
    if resolved.is_lost("plans") {
        return;
    }
    let tenants = resolved.names("tenants");
    let tenants = tenants.iter().map(|tenant| ConfigPath::named("tenants.<name>.plan", tenant));
    let plans = resolved.names("plans");
    for path in tenants.chain([ConfigPath::plain("default_plan")]) {
        let is_set = resolved.is_set(&path) && !resolved.is_any_broken(std::slice::from_ref(&path));
        let Some(Setting::Text(plan)) = resolved.get(&path).filter(|_| is_set) else { continue };
        if plans.contains(plan) {
            continue;
        }
        let message = format!("there is no plan `{}`", shortened(plan));
        let help = match nearest(plan, plans.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let plans: Vec<String> = plans.iter().map(|plan| format!("`{plan}`")).collect();
                format!("the plans are {}; add another with `[plans.NAME]`", plans.join(", "))
            }
        };
        let location = resolved.location(&path);
        resolved.report(location, &path, ValueError::new(message, "no such plan", Some(help)));
    }
}

fn traces_endpoint(resolved: &mut Resolution) {
    let endpoint = ConfigPath::plain("traces.endpoint");
    let Some(Setting::Text(text)) = resolved.get(&endpoint) else { return };
    let Err(why) = text.parse::<HttpEndpoint>() else { return };
    let message = format!("`{}` is not the address of a collector: {why}", shortened(text));
    let help = Some("write it as in `http://127.0.0.1:4318`".to_owned());
    let location = resolved.location(&endpoint);
    resolved.report(location, &endpoint, ValueError::new(message, "not an address", help));
}

fn jobs_with_metrics(resolved: &mut Resolution) {
    let jobs = ConfigPath::plain("metrics.jobs");
    let Some(Setting::Text(text)) = resolved.get(&jobs) else { return };
    if resolved.is_any_broken(std::slice::from_ref(&jobs)) || text.parse::<MetricsJobs>().is_ok() {
        return;
    }
    let message = format!("`{}` names no label", shortened(text));
    let help = Some("write a label and its value, as in `alert=page`, or `*` for all jobs".to_owned());
    let location = resolved.location(&jobs);
    resolved.report(location, &jobs, ValueError::new(message, "not a label", help));
}

/// A plan of this name with a limit would mislead everyone who sees the name.
fn unlimited_is(resolved: &mut Resolution) {
    let limits: Vec<ConfigPath> = resolved
        .values
        .iter()
        .filter(|(path, value)| {
            path.pattern.starts_with("plans.")
                && path.name.as_deref() == Some("unlimited")
                && value.setting != Setting::Nothing
        })
        .map(|(path, _)| path.clone())
        .collect();
    for path in limits {
        let location = resolved.location(&path);
        let help = Some("rename the plan, and set `default_plan` to the new name".to_owned());
        let message = "the plan `unlimited` cannot have limits";
        resolved.report(location, &path, ValueError::new(message, "a limit", help));
    }
}

/// Reports an error about several keys: at the first one that was set, with the next one as the related location.
fn between(resolved: &mut Resolution, first: &ConfigPath, others: &[&ConfigPath], error: ValueError) {
    let said: Vec<&ConfigPath> =
        std::iter::once(first).chain(others.iter().copied()).filter(|path| resolved.is_set(path)).collect();
    let blamed = said.first().copied().unwrap_or(first);
    let fault = ConfigError {
        other: said.get(1).map(|path| resolved.location(path)),
        ..ConfigError::new(resolved.location(blamed), Some(blamed.to_string()), error)
    };
    resolved.collected.errors.push(fault);
}
