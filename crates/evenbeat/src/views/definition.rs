//! What is doubtful about a valid definition because of what is around it (J6).

use evenbeat_core::job::Job;
use evenbeat_core::unsatisfiable::NodeFit;

use super::model::DefinitionDoubt;
use crate::app::App;

/// What is doubtful about valid jobs because of what is around them: nodes that cannot take them, and a site that
/// alone has no limit. `base_of` tells where in a body a job stands.
pub(crate) async fn doubts_around(
    app: &App,
    jobs: &[Job],
    base_of: impl Fn(usize) -> String,
) -> Vec<DefinitionDoubt> {
    let known = app.node.ask(|engine, _| (engine.nodes(), engine.settings().sites.clone())).await;
    let Some((nodes, sites)) = known else { return Vec::new() };
    let doubt = |idx: usize, job: &Job, field: &str, detail: String| DefinitionDoubt {
        job: job.key.to_string(),
        pointer: format!("{}/{field}", base_of(idx)),
        detail,
    };
    let mut doubts = Vec::new();
    for (idx, job) in jobs.iter().enumerate() {
        // Every node that is wanted is also unwanted: the definition's own warnings say so.
        if !job.place.excludes_all() {
            let fit = NodeFit::of(job, nodes.iter().map(|(node, pools)| (node, pools)));
            let why = fit.unsatisfiable(job);
            doubts.extend(why.map(|why| doubt(idx, job, why.field(), format!("{why} ({})", why.hint()))));
        }
        if let Some(site) = job.site.as_ref().filter(|site| !sites.is_empty() && !sites.contains_key(site)) {
            let detail = format!(
                "site `{site}` has no limits, while other sites have some (add `[sites.\"{site}\"]`, or correct `site`)"
            );
            doubts.push(doubt(idx, job, "site", detail));
        }
    }
    doubts
}
