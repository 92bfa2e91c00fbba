//! What any store tells about late jobs (K7).

use evenbeat::testing::store::any::AnyStore;
use evenbeat::testing::store::spans::{GroupBy, JobSpan, SpanKind};
use evenbeat_core::attainment::Span;
use evenbeat_core::store::{PutAnswer, PutJob, Seen};
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};

pub(crate) fn span(key: &str, kind: SpanKind, from: Timestamp, to: Option<Timestamp>) -> JobSpan {
    JobSpan { key: key.parse().unwrap(), kind, span: Span { from, to } }
}

/// Says that a job was there a week ago already.
pub(crate) async fn make_old(store: &AnyStore, key: &str, now: Timestamp) {
    let row = store.job(&key.parse().unwrap()).await.unwrap().unwrap();
    let mut state = row.state.clone();
    state.created_at = now - Duration::from_days(7);
    let put = PutJob {
        job: row.job,
        state,
        seen: Seen::Version(row.version),
        is_revision: true,
        is_deleted: false,
        records: Vec::new(),
        audit: None,
        request: None,
    };
    let answer = store.put_jobs(vec![put]).await.unwrap();
    assert!(matches!(answer[..], [PutAnswer::Put(_)]), "{answer:?}");
}

/// Two jobs `a` and `b` are there for a week: `a` has the label `team=red`, `b` has `team=blue`.
pub(crate) async fn check_store(store: &AnyStore, now: Timestamp) {
    let ago = |hours: i64| now - Duration::from_hours(hours);
    let day = TimeWindow::new(ago(24), now);
    let groups = async |by: GroupBy| {
        let found = store.attainment(&by, day).await.unwrap();
        let figures = |it: &evenbeat_core::attainment::Attainment| {
            (it.late.as_millis() / 3_600_000, it.counted.as_millis() / 3_600_000)
        };
        found.into_iter().map(|it| (it.name, it.n_jobs, figures(&it.attainment))).collect::<Vec<_>>()
    };
    assert_eq!(groups(GroupBy::Fleet).await, [(None, 2, (0, 48))]);
    let begun = vec![
        span("a", SpanKind::Late, ago(30), None),
        span("a", SpanKind::Late, ago(3), None),
        span("b", SpanKind::Paused, ago(12), None),
        span("gone", SpanKind::Late, ago(3), None),
    ];
    store.put_spans(begun.clone()).await.unwrap();
    assert_eq!(store.open_spans().await.unwrap().len(), 3, "there is no job `gone`");
    let ended = vec![
        span("a", SpanKind::Late, ago(30), Some(ago(22))),
        // Told without a beginning.
        span("a", SpanKind::Late, ago(10), Some(ago(9))),
        span("b", SpanKind::Paused, ago(12), Some(ago(6))),
        span("b", SpanKind::Late, ago(60), Some(ago(50))),
    ];
    store.put_spans(ended.clone()).await.unwrap();
    // What is told again, or by another node, changes nothing.
    store.put_spans(begun).await.unwrap();
    let later = ended.into_iter().map(|it| span(it.key.as_str(), it.kind, it.span.from, Some(now))).collect();
    store.put_spans(later).await.unwrap();
    let late = (2 + 1 + 3, 24 + 18);
    assert_eq!(groups(GroupBy::Fleet).await, [(None, 2, late)]);
    assert_eq!(groups(GroupBy::Tenant).await, [(None, 2, late)]);
    let by_team = groups(GroupBy::Label("team".to_owned())).await;
    assert_eq!(by_team, [(Some("blue".to_owned()), 1, (0, 18)), (Some("red".to_owned()), 1, (6, 24))]);
    assert_eq!(groups(GroupBy::Label("stage".to_owned())).await, []);
    let of_a = store.spans_of("a".parse().unwrap(), ago(24)).await.unwrap();
    assert_eq!(of_a.len(), 3, "{of_a:?}");
    store.trim_spans(ago(8)).await.unwrap();
    let of_a = store.spans_of("a".parse().unwrap(), ago(100)).await.unwrap();
    assert_eq!(of_a, [span("a", SpanKind::Late, ago(3), None)]);
}
