use super::*;
use crate::testing::{both_worlds, flawed, gallery};

/// Tags without an end tag.
const EMPTY: [&str; 2] = ["meta", "!doctype"];

/// The tags of a page or drawing in the order in which they begin. Checks that each tag ends in its place and that all
/// text is escaped.
pub(crate) fn tags(text: &str) -> Vec<&str> {
    let mut open: Vec<&str> = Vec::new();
    let mut seen = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        assert!(!rest[..start].contains('>'), "a bare '>' in {:?}", &rest[..start]);
        let end = start + rest[start..].find('>').expect("a tag that ends");
        let inside = &rest[start + 1..end];
        let name = inside.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap_or_default();
        assert!(!inside.contains('<'), "a bare '<' in {inside:?}");
        assert_eq!(inside.matches('"').count() % 2, 0, "an open quote in {inside:?}");
        if inside.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{inside}");
        } else {
            seen.push(name);
            if !inside.ends_with('/') && !EMPTY.contains(&name) {
                open.push(name);
            }
        }
        rest = &rest[end + 1..];
        if name == "style" && !inside.starts_with('/') {
            rest = &rest[rest.find("</style>").expect("a style that ends")..];
        }
    }
    assert!(open.is_empty(), "never closed: {open:?}");
    seen
}

/// The page without its style and without the content of drawings.
fn structure(page: &str) -> String {
    let mut text = String::new();
    let mut skip = false;
    for line in page.lines().skip_while(|line| !line.starts_with("<body")) {
        skip |= line.starts_with("<svg");
        if !skip {
            text.push_str(line);
            text.push('\n');
        }
        skip &= !line.starts_with("</svg");
    }
    text
}

#[test]
fn the_page_has_a_summary_and_every_figure() {
    insta::assert_snapshot!(structure(&page(&gallery())));
}

#[test]
fn the_page_is_well_formed_and_asks_the_network_for_nothing() {
    let page = page(&gallery());
    let tags = tags(&page);
    assert!(tags.iter().all(|tag| !["script", "link", "img", "iframe", "image", "use"].contains(tag)));
    for word in ["src=", "@import", "url(http", "href=\"http"] {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn ids_are_unique_on_the_page() {
    let page = page(&gallery());
    let mut ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn every_drawing_has_a_form_for_a_narrow_page() {
    let page = page(&gallery());
    for figure in page.split("<figure>").skip(1) {
        let (roomy, narrow) = figure.split_once("<div class=\"narrow\">").unwrap();
        assert!(roomy.contains("<div class=\"roomy\">"));
        assert_eq!([roomy, narrow].map(|part| part.matches("viewBox=\"0 0 360 ").count()), [0, 1]);
    }
}

#[test]
fn numbers_of_this_run_stand_beside_the_shipped_ones_and_both_say_whose_they_are() {
    let mut results = gallery();
    let figure = &mut results[0];
    figure.quick = true;
    figure.info.readme = "# A3\n\n## Result\n\nFull run: utilisation 12.3 %.\n".to_owned();
    let page = page(&results[..1]);
    tags(&page);
    let places = [
        "<h3>This run</h3>",
        "quick form",
        "98.4",
        "<h3>Shipped result</h3>",
        "of the shipped full run, not of this run",
        "12.3 %",
    ];
    let mut from = page.find("<section").expect("the figure");
    for words in places {
        from += page[from..].find(words).unwrap_or_else(|| panic!("{words} stands below the one before it"));
    }
    let mut own = gallery();
    (own[0].info.is_shipped, own[0].info.readme) = (false, "# Mine\n\n12.3 %\n".to_owned());
    let page = super::page(&own[..1]);
    assert!(page.contains("<h3>Notes</h3>") && !page.contains("shipped"), "{page}");
}

#[test]
fn a_scenario_that_declares_no_plots_has_tables_of_runs_and_flows() {
    let mut results = gallery().split_off(1);
    results.truncate(1);
    let figure = &mut results[0];
    (figure.scenario.draws_by_default, figure.info.paper) = (true, String::new());
    figure.scenario.scores.clear();
    for record in &mut figure.records {
        for flow in ["udt", "tcp"] {
            record.metrics.extend([(format!("goodput.{flow}"), 48e6), (format!("loss.{flow}"), 0.01)]);
            record.metrics.insert(format!("rtt.{flow}"), 0.023);
        }
    }
    let page = page(&results);
    tags(&page);
    for words in
        ["Results of the lab", "No scores", "<th>Flow</th>", ">Goodput</th>", ">Loss</th>", ">Round-trip time</th>"]
    {
        assert!(page.contains(words), "{words}");
    }
    for value in ["48\u{a0}Mbit/s", "1\u{a0}%", "23\u{a0}ms"] {
        assert!(page.contains(value), "{value}");
    }
}

#[test]
fn a_plot_without_a_point_of_the_grid_is_left_out() {
    let mut results = gallery();
    let plots = |results: &[FigureResult]| page(results).matches("<figure>").count();
    let all = plots(&results);
    let result = results.iter_mut().find(|result| !result.scenario.axes.is_empty()).unwrap();
    let axis = result.scenario.axes[0].name.clone();
    result.scenario.plots[0].filter = Some(format!("{axis} == 1ns and {axis} == 2ns"));
    assert_eq!(plots(&results), all - 1);
}

#[test]
fn hostile_names_stay_text() {
    const HOSTILE: &str = "\"><script>alert('x')</script>&\u{0}\u{202e}";
    let mut results = gallery();
    for result in &mut results {
        result.info.title = HOSTILE.to_owned();
        result.info.id.push_str(HOSTILE);
        result.info.shows = HOSTILE.to_owned();
        result.info.source = HOSTILE.to_owned();
        result.info.paper = HOSTILE.to_owned();
        result.info.readme =
            format!("# {HOSTILE}\n{HOSTILE}\n- {HOSTILE}\n## {HOSTILE}\n`{HOSTILE}` [{HOSTILE}](#{HOSTILE})");
        result.command = HOSTILE.to_owned();
        for published in &mut result.info.published {
            published.note = HOSTILE.to_owned();
            published.text = HOSTILE.to_owned();
        }
        for curve in &mut result.scenario.curves {
            curve.label = HOSTILE.to_owned();
        }
        for score in &mut result.scenario.scores {
            score.says = HOSTILE.to_owned();
        }
        for plot in &mut result.scenario.plots {
            plot.title = Some(HOSTILE.to_owned());
            plot.name.push_str(HOSTILE);
            plot.y_axis.label = Some(HOSTILE.to_owned());
        }
    }
    let page = page(&results);
    assert!(!tags(&page).contains(&"script"));
    assert!(page.contains("&lt;script&gt;"));
}

#[test]
fn figures_of_both_worlds_stand_side_by_side_and_invalid_runs_are_marked() {
    let mut results = both_worlds();
    let id = results[0].info.id.clone();
    let valid = page(&results);
    tags(&valid);
    let section = |page: &str| {
        let from = page.find(&format!("<section class=\"figure\" id=\"{id}\"")).expect("its section");
        page[from..from + page[from..].find("</section>").expect("its end")].to_owned()
    };
    assert_eq!(valid.matches("<section").count(), gallery().len(), "one section for both");
    for words in ["Published, simulated and emulated values", ", emulated</th>", "--world emu", "real time"] {
        assert!(section(&valid).contains(words), "{words}");
    }
    assert!(!valid.contains("Invalid") && valid.contains("that were emulated too"));
    for run in &mut results[1].records {
        run.emulation = Some(flawed());
    }
    let flawed = section(&page(&results));
    assert!(flawed.contains("Invalid, because") && flawed.contains("97 % of a processor"));
    assert!(flawed.contains("emulated, invalid"));
    let scores = results[1].scenario.scores.len();
    assert!(scores > 0 && flawed.matches("invalid, the first because").count() >= scores);
}

#[test]
fn a_report_of_emulated_runs_alone_says_so() {
    let results = both_worlds().split_off(1);
    let page = page(&results[..1]);
    tags(&page);
    assert!(page.contains(", emulated, in 1 figure") && page.contains("Published and emulated values"));
}

#[test]
fn an_empty_report_is_a_page_too() {
    tags(&page(&[]));
    assert!(page(&[]).contains("0 of 0 scores met"));
}

#[test]
fn figures_stand_in_the_order_of_their_papers_and_numbers() {
    let mut ids = [("survey", "b1"), ("", "mine"), ("udt-2004", "a10"), ("udt-2004", "a-err"), ("udt-2004", "a9")];
    ids.sort_by_key(|(paper, id)| order(paper, id));
    assert_eq!(ids.map(|(_, id)| id), ["a9", "a10", "a-err", "b1", "mine"]);
}
