//! Routes through jobs, by key.

use evenbeat_core::ids::{JobKey, Pool, Site, Tenant};

use super::{Conditions, Dialect, KEYS_MAX, RARE_MAX, ROWS_MAX, Sql, text};
use crate::store::query::{COUNT_MAX, JobFilter};

/// What a list of jobs walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum JobRoute {
    /// Open runs, whose jobs are then sorted.
    Running,
    /// Paused jobs, which are then sorted.
    Paused,
    /// The jobs with one of the labels of the filter, by its index.
    Label(usize),
    Tenant,
    Site,
    Pool,
    Disabled,
    /// All jobs.
    Key,
}

/// A list of jobs.
#[derive(Debug)]
pub(in crate::store) struct JobWalk<'a> {
    filter: &'a JobFilter,
    after: Option<&'a JobKey>,
    dialect: &'static Dialect,
}

/// The tables of a route, and the conditions that its index covers.
struct Base {
    from: String,
    /// The columns with the key and the id of a job.
    key: &'static str,
    id: &'static str,
    has_job: bool,
    has_memory: bool,
    conditions: Conditions,
}

/// The conditions that the index does not cover.
#[derive(Default)]
struct Rest {
    conditions: Conditions,
    needs_label: bool,
    needs_job: bool,
    needs_memory: bool,
}

impl<'a> JobWalk<'a> {
    pub(in crate::store) fn new(
        filter: &'a JobFilter,
        after: Option<&'a JobKey>,
        dialect: &'static Dialect,
    ) -> JobWalk<'a> {
        JobWalk { filter, after, dialect }
    }

    /// Routes over jobs that are usually few. Use one if [`JobWalk::n_rare`] is at most [`RARE_MAX`].
    pub(in crate::store) fn rare_routes(&self) -> Vec<JobRoute> {
        let running = (self.filter.is_running == Some(true)).then_some(JobRoute::Running);
        let paused = (self.filter.is_paused == Some(true)).then_some(JobRoute::Paused);
        running.into_iter().chain(paused).collect()
    }

    /// Routes in the order of keys. There is always one.
    pub(in crate::store) fn routes(&self) -> Vec<JobRoute> {
        let mut routes: Vec<JobRoute> = (0..self.filter.labels.len()).map(JobRoute::Label).collect();
        routes.extend(self.filter.tenant.as_ref().map(|_| JobRoute::Tenant));
        routes.extend(self.filter.site.as_ref().map(|_| JobRoute::Site));
        routes.extend(self.filter.pool.as_ref().map(|_| JobRoute::Pool));
        routes.extend((self.filter.is_enabled == Some(false)).then_some(JobRoute::Disabled));
        if routes.is_empty() {
            routes.push(JobRoute::Key);
        }
        routes
    }

    /// Whether the index covers the whole filter, so that a page examines only the jobs that it shows.
    pub(in crate::store) fn is_straight(&self, route: JobRoute) -> bool {
        self.rest(route, self.base(route).key).conditions.is_empty()
    }

    /// Counts the jobs of a rare route, up to one more than [`RARE_MAX`].
    pub(in crate::store) fn n_rare(&self, route: JobRoute) -> Sql {
        let most = RARE_MAX + 1;
        let rare = match route {
            JobRoute::Paused => {
                format!("memory m{} WHERE m.paused_by IS NOT NULL", self.dialect.hint("memory_paused"))
            }
            _ => "open_run".to_owned(),
        };
        Sql::new(format!("SELECT count(*) FROM (SELECT 1 FROM {rare} LIMIT {most}) c"))
    }

    /// The key at which a page must end. No row if the route ends before.
    pub(in crate::store) fn horizon(&self, route: JobRoute) -> Sql {
        let base = self.base(route);
        let rest = self.rest(route, base.key);
        let is_in_index = !(rest.needs_label || rest.needs_job || rest.needs_memory);
        let most = if is_in_index { KEYS_MAX } else { ROWS_MAX };
        let mut sql = Sql::new(format!("SELECT {} FROM {}", base.key, base.from));
        sql.push_where(self.in_range(base.conditions, base.key, None));
        sql.push(&format!(" ORDER BY {} LIMIT 1 OFFSET {}", base.key, most - 1), []);
        sql
    }

    /// The keys of a page as `key`, up to the horizon.
    pub(in crate::store) fn keys(&self, route: JobRoute, horizon: Option<&str>, most: usize) -> Sql {
        let mut sql = self.found(route, horizon);
        sql.push(&format!(" ORDER BY {} LIMIT {most}", self.base(route).key), []);
        sql
    }

    /// Counts jobs up to the horizon, and up to one more than [`COUNT_MAX`].
    pub(in crate::store) fn count(&self, route: JobRoute, horizon: Option<&str>) -> Sql {
        let mut sql = self.found(route, horizon);
        sql.push(&format!(" LIMIT {}", COUNT_MAX + 1), []);
        sql.within("SELECT count(*) FROM (", ") c")
    }

    fn found(&self, route: JobRoute, horizon: Option<&str>) -> Sql {
        let Base { from, key, id, has_job, has_memory, conditions } = self.base(route);
        let rest = self.rest(route, key);
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

    fn base(&self, route: JobRoute) -> Base {
        let mut conditions = Conditions::default();
        let hint = |index: &str| self.dialect.hint(index);
        let join = self.dialect.join;
        let name = |name: Option<&str>| [text(name.unwrap_or_default())];
        let filter = self.filter;
        let from = match route {
            JobRoute::Running => {
                format!("(SELECT DISTINCT job_id FROM open_run) o {join} job j ON j.id = o.job_id")
            }
            JobRoute::Paused => {
                conditions.and("m.paused_by IS NOT NULL", []);
                format!("memory m{} {join} job j ON j.id = m.job_id", hint("memory_paused"))
            }
            JobRoute::Label(idx) => {
                // Removed jobs have no labels.
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
            JobRoute::Tenant => {
                conditions.and("j.tenant = {}", name(filter.tenant.as_ref().map(Tenant::as_str)));
                format!("job j{}", hint("job_by_tenant"))
            }
            JobRoute::Site => {
                conditions.and("j.site = {}", name(filter.site.as_ref().map(Site::as_str)));
                format!("job j{}", hint("job_by_site"))
            }
            JobRoute::Pool => {
                conditions.and("j.pool = {}", name(filter.pool.as_ref().map(Pool::as_str)));
                format!("job j{}", hint("job_by_pool"))
            }
            JobRoute::Disabled => {
                conditions.and("NOT j.is_enabled", []);
                format!("job j{}", hint("job_disabled"))
            }
            JobRoute::Key => format!("job j{}", hint("job_by_key")),
        };
        conditions.and("NOT j.is_deleted", []);
        Base {
            from,
            key: "j.key",
            id: "j.id",
            has_job: true,
            has_memory: route == JobRoute::Paused,
            conditions,
        }
    }

    /// Limits keys to the prefix, the start of the page and the horizon.
    fn in_range(&self, mut conditions: Conditions, key: &str, horizon: Option<&str>) -> Conditions {
        if let Some(prefix) = &self.filter.key_prefix {
            // Keys are ASCII, so all keys with this prefix are smaller.
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

    fn rest(&self, route: JobRoute, key: &str) -> Rest {
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
        for (idx, (name, value)) in
            labels.iter().enumerate().filter(|(idx, _)| route != JobRoute::Label(*idx))
        {
            let label = format!(
                "label l{idx} WHERE l{idx}.name = {{}} AND l{idx}.value = {{}} AND l{idx}.key = {key}"
            );
            rest.conditions.and(&format!("EXISTS (SELECT 1 FROM {label})"), [text(name), text(value)]);
            rest.needs_label = true;
        }
        let named = [
            (JobRoute::Pool, "j.pool = {}", pool.as_ref().map(Pool::as_str)),
            (JobRoute::Site, "j.site = {}", site.as_ref().map(Site::as_str)),
            (JobRoute::Tenant, "j.tenant = {}", tenant.as_ref().map(Tenant::as_str)),
        ];
        for (of, condition, name) in named {
            if let Some(name) = name.filter(|_| route != of) {
                rest.conditions.and(condition, [text(name)]);
                rest.needs_job = true;
            }
        }
        if route != JobRoute::Disabled {
            rest.conditions.and_if(*is_enabled, "j.is_enabled");
            rest.needs_job |= is_enabled.is_some();
        }
        if route != JobRoute::Paused {
            rest.conditions.and_if(*is_paused, "m.paused_by IS NOT NULL");
            rest.needs_memory |= is_paused.is_some();
        }
        if route != JobRoute::Running {
            rest.conditions.and_if(*is_running, "0 < m.n_open");
            rest.needs_memory |= is_running.is_some();
        }
        rest
    }
}

/// The route with the furthest horizon: it skips the fewest jobs. Its horizon is `None` if it reaches the end.
pub(in crate::store) fn furthest(
    routes: impl IntoIterator<Item = (JobRoute, Option<String>)>,
) -> (JobRoute, Option<String>) {
    let furthest = routes.into_iter().max_by(|(_, one), (_, other)| match (one, other) {
        (Some(one), Some(other)) => one.cmp(other),
        (one, other) => one.is_none().cmp(&other.is_none()),
    });
    furthest.unwrap_or((JobRoute::Key, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Dialect = Dialect { join: "JOIN", position: "strpos", has_hints: false };

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "a table of values reads better")]
    fn check_routes(filter: JobFilter, expected: &[JobRoute]) {
        let jobs = JobWalk::new(&filter, None, &PLAIN);
        assert_eq!([jobs.rare_routes(), jobs.routes()].concat(), expected, "{filter:?}");
    }

    #[test]
    fn what_is_asked_for_says_which_ways_there_are() {
        let any = JobFilter::default;
        let labels = vec![("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())];
        check_routes(any(), &[JobRoute::Key]);
        check_routes(JobFilter { key_text: Some("x".to_owned()), ..any() }, &[JobRoute::Key]);
        check_routes(JobFilter { is_paused: Some(false), is_enabled: Some(true), ..any() }, &[JobRoute::Key]);
        check_routes(JobFilter { is_enabled: Some(false), ..any() }, &[JobRoute::Disabled]);
        check_routes(JobFilter { is_running: Some(true), ..any() }, &[JobRoute::Running, JobRoute::Key]);
        check_routes(
            JobFilter { labels, site: Some("s".parse().unwrap()), is_paused: Some(true), ..any() },
            &[JobRoute::Paused, JobRoute::Label(0), JobRoute::Label(1), JobRoute::Site],
        );
    }

    #[test]
    fn a_way_that_knows_all_is_straight() {
        let site = JobFilter { site: Some("s".parse().unwrap()), ..JobFilter::default() };
        let filter = JobFilter { key_prefix: Some("a".to_owned()), ..site.clone() };
        assert!(
            JobWalk::new(&filter, None, &PLAIN).is_straight(JobRoute::Site),
            "the prefix is a part of the range"
        );
        assert!(!JobWalk::new(&filter, None, &PLAIN).is_straight(JobRoute::Key));
        let filter = JobFilter { is_running: Some(false), ..site };
        assert!(!JobWalk::new(&filter, None, &PLAIN).is_straight(JobRoute::Site));
    }

    #[test]
    fn the_way_that_comes_furthest_is_taken() {
        let at = |key: &str| Some(key.to_owned());
        assert_eq!(
            furthest([(JobRoute::Pool, at("b")), (JobRoute::Site, at("c"))]),
            (JobRoute::Site, at("c"))
        );
        assert_eq!(furthest([(JobRoute::Pool, None), (JobRoute::Site, at("c"))]), (JobRoute::Pool, None));
        assert_eq!(furthest([(JobRoute::Pool, at("z")), (JobRoute::Site, None)]), (JobRoute::Site, None));
    }
}
