//! The page about sites and quotas.

use super::client::{PageClient, seen};
use crate::support::served::Served;

#[test]
fn sites_and_tenants_are_listed_with_links_to_their_jobs() {
    let served = Served::slow();
    let viewer = PageClient::new(&served, "viewer");
    let none = seen(&viewer.page("/sites"));
    assert!(none.contains("No job names a site or a tenant, and none has limits."), "{none}");
    served.add("shop", r#""manual":true,"site":"shop.example","tenant":"acme""#);
    served.run_of("shop");
    let page = viewer.page("/sites");
    assert!(page.contains(r#"href="/?tab=all&amp;site=shop.example""#), "{page}");
    assert!(page.contains(r#"href="/?tab=running&amp;tenant=acme""#), "{page}");
    let text = seen(&page);
    assert!(text.contains("No job waits for a site or a quota"), "{text}");
    assert!(text.contains("1 site and 1 tenant."), "{text}");
}

#[test]
fn a_long_list_is_searched_and_an_empty_search_says_so() {
    let served = Served::start();
    for n in 0..60 {
        served.add(&format!("job-{n}"), &format!(r#""manual":true,"site":"s{n}.example""#));
    }
    let viewer = PageClient::new(&served, "viewer");
    let all = viewer.page("/sites");
    assert!(seen(&all).contains("The first 50 of 60"), "{}", seen(&all));
    let found = viewer.page("/sites?q=S59");
    assert!(found.contains("s59.example") && !found.contains("s58.example"), "{found}");
    let nothing = viewer.page("/sites?q=%3Cscript%3E");
    assert!(seen(&nothing).contains("Searched 60 sites."), "{}", seen(&nothing));
    assert!(nothing.contains(r#"value="&lt;script&gt;""#), "{nothing}");
}
