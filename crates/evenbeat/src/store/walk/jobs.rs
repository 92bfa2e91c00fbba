//! Ways through jobs, by key.

use evenbeat_core::ids::{JobKey, Pool, Site, Tenant};

use super::{Conditions, Dialect, KEYS_MAX, RARE_MAX, ROWS_MAX, Sql, text};
use crate::store::query::{COUNT_MAX, JobFilter};

/// What is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum JobsWay {
    /// Open runs, whose jobs are then put in order.
    Running,
    /// Paused jobs, likewise.
    Paused,
    /// The jobs with one of the labels that were asked for.
    Label(usize),
    Tenant,
    Site,
    Pool,
    Disabled,
    /// All of them.
    Key,
}

/// Some jobs that somebody looks for.
#[derive(Debug)]
pub(in crate::store) struct Jobs<'a> {
    filter: &'a JobFilter,
    after: Option<&'a JobKey>,
    dialect: &'static Dialect,
}

/// The tables of a way, and what is known of all that it passes.
struct Base {
    from: String,
    /// Where the key of a job stands, and its id.
    key: &'static str,
    id: &'static str,
    has_job: bool,
    has_memory: bool,
    conditions: Conditions,
}

/// What must be known besides.
#[derive(Default)]
struct Rest {
    conditions: Conditions,
    needs_label: bool,
    needs_job: bool,
    needs_memory: bool,
}

impl<'a> Jobs<'a> {
    pub(in crate::store) fn new(
        filter: &'a JobFilter,
        after: Option<&'a JobKey>,
        dialect: &'static Dialect,
    ) -> Jobs<'a> {
        Jobs { filter, after, dialect }
    }

    /// Ways to what is rare most of the time: one is good if there are ([`Jobs::n_rare`]) no more than [`RARE_MAX`].
    pub(in crate::store) fn rare_ways(&self) -> Vec<JobsWay> {
        let running = (self.filter.is_running == Some(true)).then_some(JobsWay::Running);
        let paused = (self.filter.is_paused == Some(true)).then_some(JobsWay::Paused);
        running.into_iter().chain(paused).collect()
    }

    /// Ways in the order of keys. There is always one.
    pub(in crate::store) fn ways(&self) -> Vec<JobsWay> {
        let mut ways: Vec<JobsWay> = (0..self.filter.labels.len()).map(JobsWay::Label).collect();
        ways.extend(self.filter.tenant.as_ref().map(|_| JobsWay::Tenant));
        ways.extend(self.filter.site.as_ref().map(|_| JobsWay::Site));
        ways.extend(self.filter.pool.as_ref().map(|_| JobsWay::Pool));
        ways.extend((self.filter.is_enabled == Some(false)).then_some(JobsWay::Disabled));
        if ways.is_empty() {
            ways.push(JobsWay::Key);
        }
        ways
    }

    /// Whether a way leads to nothing but what was asked for: then a page looks at no more than it shows.
    pub(in crate::store) fn is_straight(&self, way: JobsWay) -> bool {
        self.rest(way, self.base(way).key).conditions.is_empty()
    }

    /// How many of what should be rare there are, up to one more than is good.
    pub(in crate::store) fn n_rare(&self, way: JobsWay) -> Sql {
        let most = RARE_MAX + 1;
        let rare = match way {
            JobsWay::Paused => {
                format!("memory m{} WHERE m.paused_by IS NOT NULL", self.dialect.hint("memory_paused"))
            }
            _ => "open_run".to_owned(),
        };
        Sql::new(format!("SELECT count(*) FROM (SELECT 1 FROM {rare} LIMIT {most}) c"))
    }

    /// The key that a way reaches when it has looked at as much as it may; no row if it comes to its end before.
    pub(in crate::store) fn horizon(&self, way: JobsWay) -> Sql {
        let base = self.base(way);
        let rest = self.rest(way, base.key);
        let is_in_index = !(rest.needs_label || rest.needs_job || rest.needs_memory);
        let most = if is_in_index { KEYS_MAX } else { ROWS_MAX };
        let mut sql = Sql::new(format!("SELECT {} FROM {}", base.key, base.from));
        sql.push_where(self.in_range(base.conditions, base.key, None));
        sql.push(&format!(" ORDER BY {} LIMIT 1 OFFSET {}", base.key, most - 1), []);
        sql
    }

    /// The keys of a page as `key`, up to a horizon if there is one.
    pub(in crate::store) fn keys(&self, way: JobsWay, horizon: Option<&str>, most: usize) -> Sql {
        let mut sql = self.found(way, horizon);
        sql.push(&format!(" ORDER BY {} LIMIT {most}", self.base(way).key), []);
        sql
    }

    /// How many there are up to a horizon, and up to one more than [`COUNT_MAX`].
    pub(in crate::store) fn count(&self, way: JobsWay, horizon: Option<&str>) -> Sql {
        let mut sql = self.found(way, horizon);
        sql.push(&format!(" LIMIT {}", COUNT_MAX + 1), []);
        sql.within("SELECT count(*) FROM (", ") c")
    }

    fn found(&self, way: JobsWay, horizon: Option<&str>) -> Sql {
        let Base { from, key, id, has_job, has_memory, conditions } = self.base(way);
        let rest = self.rest(way, key);
        let join = self.dialect.join;
        let mut sql = Sql::new(format!("SELECT {key} AS key FROM {from}"));
        if rest.needs_job && !has_job {
            sql.push(&format!(" {join} job j ON j.id = {id}"), []);
        }
        if rest.needs_memory && !has_memory {
            sql.push(&format!(" {join} memory m ON m.job_id = {id}"), []);
        }
        let mut conditions = self.in_range(conditions, key, horizon);
        conditions.0.extend(rest.conditions.0);
        sql.push_where(conditions);
        sql
    }

    fn base(&self, way: JobsWay) -> Base {
        let mut conditions = Conditions::default();
        let hint = |index: &str| self.dialect.hint(index);
        let join = self.dialect.join;
        let name = |name: Option<&str>| [text(name.unwrap_or_default())];
        let filter = self.filter;
        let from = match way {
            JobsWay::Running => {
                format!("(SELECT DISTINCT job_id FROM open_run) o {join} job j ON j.id = o.job_id")
            }
            JobsWay::Paused => {
                conditions.and("m.paused_by IS NOT NULL", []);
                format!("memory m{} {join} job j ON j.id = m.job_id", hint("memory_paused"))
            }
            JobsWay::Label(idx) => {
                // Removed jobs have none.
                if let Some((name, value)) = filter.labels.get(idx) {
                    conditions.and("d.name = {} AND d.value = {}", [text(name), text(value)]);
                }
                return Base {
                    from: "label d".to_owned(),
                    key: "d.key",
                    id: "d.job_id",
                    has_job: false,
                    has_memory: false,
                    conditions,
                };
            }
            JobsWay::Tenant => {
                conditions.and("j.tenant = {}", name(filter.tenant.as_ref().map(Tenant::as_str)));
                format!("job j{}", hint("job_by_tenant"))
            }
            JobsWay::Site => {
                conditions.and("j.site = {}", name(filter.site.as_ref().map(Site::as_str)));
                format!("job j{}", hint("job_by_site"))
            }
            JobsWay::Pool => {
                conditions.and("j.pool = {}", name(filter.pool.as_ref().map(Pool::as_str)));
                format!("job j{}", hint("job_by_pool"))
            }
            JobsWay::Disabled => {
                conditions.and("NOT j.is_enabled", []);
                format!("job j{}", hint("job_disabled"))
            }
            JobsWay::Key => format!("job j{}", hint("job_by_key")),
        };
        conditions.and("NOT j.is_deleted", []);
        Base { from, key: "j.key", id: "j.id", has_job: true, has_memory: way == JobsWay::Paused, conditions }
    }

    /// Keys between what was asked for, where the page begins and the horizon.
    fn in_range(&self, mut conditions: Conditions, key: &str, horizon: Option<&str>) -> Conditions {
        if let Some(prefix) = &self.filter.key_prefix {
            // Keys are ASCII, so nothing that begins so comes after this.
            let end = format!("{prefix}\u{7f}");
            conditions.and(&format!("{{}} <= {key} AND {key} < {{}}"), [text(prefix), text(&end)]);
        }
        if let Some(after) = self.after {
            conditions.and(&format!("{{}} < {key}"), [text(after.as_str())]);
        }
        if let Some(horizon) = horizon {
            conditions.and(&format!("{key} <= {{}}"), [text(horizon)]);
        }
        conditions
    }

    fn rest(&self, way: JobsWay, key: &str) -> Rest {
        let JobFilter {
            key_prefix: _,
            key_text,
            labels,
            pool,
            site,
            tenant,
            is_paused,
            is_enabled,
            is_running,
        } = self.filter;
        let mut rest = Rest::default();
        if let Some(part) = key_text {
            let position = self.dialect.position;
            rest.conditions
                .and(&format!("{position}(lower({key}), {{}}) <> 0"), [text(&part.to_lowercase())]);
        }
        for (idx, (name, value)) in labels.iter().enumerate().filter(|(idx, _)| way != JobsWay::Label(*idx)) {
            let label = format!(
                "label l{idx} WHERE l{idx}.name = {{}} AND l{idx}.value = {{}} AND l{idx}.key = {key}"
            );
            rest.conditions.and(&format!("EXISTS (SELECT 1 FROM {label})"), [text(name), text(value)]);
            rest.needs_label = true;
        }
        let named = [
            (JobsWay::Pool, "j.pool = {}", pool.as_ref().map(Pool::as_str)),
            (JobsWay::Site, "j.site = {}", site.as_ref().map(Site::as_str)),
            (JobsWay::Tenant, "j.tenant = {}", tenant.as_ref().map(Tenant::as_str)),
        ];
        for (of, condition, name) in named {
            if let Some(name) = name.filter(|_| way != of) {
                rest.conditions.and(condition, [text(name)]);
                rest.needs_job = true;
            }
        }
        if way != JobsWay::Disabled {
            rest.conditions.and_if(*is_enabled, "j.is_enabled");
            rest.needs_job |= is_enabled.is_some();
        }
        if way != JobsWay::Paused {
            rest.conditions.and_if(*is_paused, "m.paused_by IS NOT NULL");
            rest.needs_memory |= is_paused.is_some();
        }
        if way != JobsWay::Running {
            rest.conditions.and_if(*is_running, "0 < m.n_open");
            rest.needs_memory |= is_running.is_some();
        }
        rest
    }
}

/// Of several ways, with how far each would come: the one that comes furthest passes the fewest jobs in vain. None if
/// it comes to the end of all.
pub(in crate::store) fn furthest(
    ways: impl IntoIterator<Item = (JobsWay, Option<String>)>,
) -> (JobsWay, Option<String>) {
    let furthest = ways.into_iter().max_by(|(_, one), (_, other)| match (one, other) {
        (Some(one), Some(other)) => one.cmp(other),
        (one, other) => one.is_none().cmp(&other.is_none()),
    });
    furthest.unwrap_or((JobsWay::Key, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Dialect = Dialect { join: "JOIN", position: "strpos", has_hints: false };

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "a table of values reads better")]
    fn check_ways(filter: JobFilter, expected: &[JobsWay]) {
        let jobs = Jobs::new(&filter, None, &PLAIN);
        assert_eq!([jobs.rare_ways(), jobs.ways()].concat(), expected, "{filter:?}");
    }

    #[test]
    fn what_is_asked_for_says_which_ways_there_are() {
        let any = JobFilter::default;
        let labels = vec![("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())];
        check_ways(any(), &[JobsWay::Key]);
        check_ways(JobFilter { key_text: Some("x".to_owned()), ..any() }, &[JobsWay::Key]);
        check_ways(JobFilter { is_paused: Some(false), is_enabled: Some(true), ..any() }, &[JobsWay::Key]);
        check_ways(JobFilter { is_enabled: Some(false), ..any() }, &[JobsWay::Disabled]);
        check_ways(JobFilter { is_running: Some(true), ..any() }, &[JobsWay::Running, JobsWay::Key]);
        check_ways(
            JobFilter { labels, site: Some("s".parse().unwrap()), is_paused: Some(true), ..any() },
            &[JobsWay::Paused, JobsWay::Label(0), JobsWay::Label(1), JobsWay::Site],
        );
    }

    #[test]
    fn a_way_that_knows_all_is_straight() {
        let site = JobFilter { site: Some("s".parse().unwrap()), ..JobFilter::default() };
        let filter = JobFilter { key_prefix: Some("a".to_owned()), ..site.clone() };
        assert!(
            Jobs::new(&filter, None, &PLAIN).is_straight(JobsWay::Site),
            "the prefix is a part of the range"
        );
        assert!(!Jobs::new(&filter, None, &PLAIN).is_straight(JobsWay::Key));
        let filter = JobFilter { is_running: Some(false), ..site };
        assert!(!Jobs::new(&filter, None, &PLAIN).is_straight(JobsWay::Site));
    }

    #[test]
    fn the_way_that_comes_furthest_is_taken() {
        let at = |key: &str| Some(key.to_owned());
        assert_eq!(furthest([(JobsWay::Pool, at("b")), (JobsWay::Site, at("c"))]), (JobsWay::Site, at("c")));
        assert_eq!(furthest([(JobsWay::Pool, None), (JobsWay::Site, at("c"))]), (JobsWay::Pool, None));
        assert_eq!(furthest([(JobsWay::Pool, at("z")), (JobsWay::Site, None)]), (JobsWay::Site, None));
    }
}
