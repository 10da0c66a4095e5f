//! Names that exist pass. Every other name is refused with its line and the nearest name.

use super::*;
use crate::scenario::Experiment;

/// Nine lines with two flows. Axes, curves, plots and scores follow.
const HEAD: &str =
    "title = 'x'\nduration = '4s'\n[link]\nrate = '12mbit'\nrtt = '10ms'\n[[flow]]\n[[flow]]\nprotocol = 'tcp'\n\n";
const GRID: &str = "[[axis]]\nname = 'rate'\nset = 'link.rate'\nvalues = ['1mbit', '2mbit']\n\
                    [[axis]]\nname = 'queue'\nvalues = [{ label = 'red', \"link.queue\" = { kind = 'red' } }]\n";
const CURVES: &str = "[[curve]]\nname = 'native'\n[[curve]]\nname = 'none'\nset = { \"flow.2.count\" = 0 }\n";

fn figure(text: &str) -> Figure {
    let experiment = Experiment::read("mine", "mine.toml", text, &Overrides::default()).unwrap();
    let info = crate::testing::gallery()[0].info.clone();
    let info = crate::figures::FigureInfo { id: "mine".to_owned(), published: Vec::new(), ..info };
    Figure { info, experiment, text: text.to_owned(), published: String::new() }
}

fn checked(text: &str) -> Result<(), String> {
    check(&[&figure(text)], Path::new("/nowhere")).map_err(|error| error.to_string())
}

#[track_caller]
fn refused(text: &str, words: &[&str]) {
    let message = checked(text).expect_err("a name that does not exist");
    for word in words {
        assert!(message.contains(word), "{word}: {message}");
    }
}

#[test]
fn a_metric_that_does_not_exist_is_refused_with_its_line_and_the_nearest_one() {
    let bars = |y: &str| format!("{HEAD}[[plot]]\nkind = 'bars'\ny = {y}\n");
    assert_eq!(checked(&bars("['goodput.udt', 'jain', 'goodput.*', 'drops / 2']")), Ok(()));
    refused(&bars("'godput.udt'"), &["mine.toml:12: ", "no metric 'godput.udt'", "'goodput.udt'?"]);
    refused(&bars("[\n'jain',\n'jian'\n]"), &["mine.toml:14: ", "'jain'?"]);
    refused(&bars("'goodput.upd / 2'"), &["mine.toml:12: ", "'goodput.udt'?"]);
    refused(&bars("'throughput'"), &["mine.toml:12: ", "there are ", "goodput.FLOW", "utilisation"]);
    refused(&bars("'godput.*'"), &["mine.toml:12: ", "no metric of flows", "'goodput.*'?"]);
    refused(&bars("'queue.*'"), &["mine.toml:12: ", "no metric of flows"]);
    refused(&bars("'jain +'"), &["mine.toml:12: 'jain +': column"]);
    refused(&bars("'red.average'"), &["mine.toml:12: ", "no metric 'red.average'"]);
    refused(&bars("'capacity.tcp'"), &["mine.toml:12: ", "'capacity.udt'?"]);
}

#[test]
fn a_label_of_nothing_is_refused() {
    let labels = |labels: &str| format!("{HEAD}{GRID}[labels]\n{labels}\n");
    assert_eq!(checked(&labels("queue = 'Queue law'\nred = 'RED'\nudt = 'ours'\n1mbit = 'slow'")), Ok(()));
    refused(&labels("reed = 'RED'"), &["mine.toml:17: ", "'reed'", "'red'?"]);
}

#[test]
fn a_series_that_does_not_exist_or_is_not_kept_is_refused() {
    let time = |y: &str| format!("[[plot]]\nkind = 'time'\ny = '{y}'\n");
    for y in ["goodput.*", "queue", "rtt.udt"] {
        assert_eq!(checked(&format!("{HEAD}{}", time(y))), Ok(()), "{y}");
    }
    refused(&format!("{HEAD}{}", time("goodput.upd")), &["mine.toml:12: ", "no series", "'goodput.udt'?"]);
    refused(&format!("{HEAD}{}", time("drops")), &["mine.toml:12: ", "no series 'drops'"]);
    let kept = format!("{HEAD}{GRID}{}", time("goodput.*"));
    refused(&kept, &["mine.toml:19: ", "series = true"]);
    assert_eq!(checked(&kept.replacen('\n', "\nseries = true\n", 1)), Ok(()));
}

#[test]
fn an_axis_or_a_word_that_does_not_exist_is_refused() {
    let plot = |keys: &str| format!("{HEAD}{GRID}[[plot]]\nkind = 'lines'\ny = 'utilisation'\n{keys}\n");
    for keys in ["x = 'rate'", "x = 'queue'", "x = 'queue.mean'", "x = 'rate'\nwhere = 'queue == \"red\"'"] {
        assert_eq!(checked(&plot(keys)), Ok(()), "{keys}");
    }
    refused(&plot("x = 'rat'"), &["mine.toml:20: ", "no metric 'rat'", "'rate'?"]);
    refused(&plot("x = 'rate'\nwhere = 'rate >'"), &["mine.toml:21: 'rate >': column"]);
    refused(&plot("x = 'rate'\nwhere = 'rtt > 1ms'"), &["mine.toml:21: ", "no metric 'rtt'"]);
    refused(&plot("x = 'rate'\nwhere = 'queue == \"rde\"'"), &["mine.toml:21: ", "value of axis 'queue'", "'red'?"]);
    let heat = plot("x = 'rate'").replace("lines", "heat");
    refused(&heat, &["mine.toml:17: ", "`by`"]);
    assert_eq!(checked(&format!("{heat}by = 'queue'\n")), Ok(()));
    refused(
        &format!("{heat}by = 'queue'\n").replace("x = 'rate'", "x = 'jain'"),
        &["mine.toml:20: ", "no axis 'jain'"],
    );
    refused(&plot("x = 'jain'").replace("lines", "bars"), &["mine.toml:20: ", "no axis 'jain'"]);
}

#[test]
fn a_score_with_a_name_that_does_not_exist_is_refused() {
    let score = |keys: &str| format!("{HEAD}{CURVES}[[score]]\nid = 'a'\nsays = 'b'\nsource = 'ours'\n{keys}\n");
    for keys in ["must = 'goodput.tcp > 1'", "must = 'jain > jain[none]'", "must = 'utilisation >= utilisation@a3'"] {
        assert_eq!(checked(&score(keys)), Ok(()), "{keys}");
    }
    refused(&score("must = 'jian > 1'"), &["mine.toml:19: ", "'jain'?"]);
    refused(&score("must = 'jain'"), &["mine.toml:19: ", "expected a condition"]);
    refused(&score("must = 'jain > 1'\nwhere = 'rates > 1'"), &["mine.toml:20: ", "no metric 'rates'"]);
    refused(&score("must = 'goodput.tcp > 1'\ncurve = 'none'"), &["mine.toml:19: ", "no metric 'goodput.tcp'"]);
    refused(&score("must = 'jain > jain[nativ]'"), &["mine.toml:19: ", "no curve 'nativ'", "'native'?"]);
    refused(&score("must = 'jain > jain@a33'"), &["mine.toml:19: ", "no figure 'a33': did you mean"]);
    refused(&score("must = 'jain > goodput.upd@a3'"), &["mine.toml:19: ", "no metric 'goodput.upd'", "'goodput.udt'?"]);
    refused(&score("must = 'jain > jain[tcp]@a3'"), &["mine.toml:19: ", "no curve 'tcp'"]);
    refused(&score("differs = 'jain'\nthan = 'jian'\nby = 0.1"), &["mine.toml:20: ", "'jain'?"]);
}

#[test]
fn a_published_number_of_an_unknown_metric_is_refused_with_its_line_in_paper_csv() {
    let with = |metric: &str, curve: Option<&str>| {
        let mut figure = figure(&format!("{HEAD}{CURVES}"));
        let mut published = crate::testing::gallery()[0].info.published[1].clone();
        (published.metric, published.curve, published.line) = (metric.to_owned(), curve.map(str::to_owned), 7);
        figure.info.published = vec![published];
        check(&[&figure], Path::new("/nowhere")).map_err(|error| error.to_string())
    };
    assert_eq!(
        (with("jain", Some("none")), with("goodput.tcp / 2", None), with("window.udt", None)),
        (Ok(()), Ok(()), Ok(()))
    );
    assert_eq!(with("jian", None), Err("paper.csv:7: there is no metric 'jian': did you mean 'jain'?".to_owned()));
    assert!(with("jain", Some("nativ")).unwrap_err().starts_with("paper.csv:7: there is no curve 'nativ'"));
}

#[test]
fn figures_that_are_run_together_may_mention_each_other() {
    let score = "[[score]]\nid = 'a'\nsays = 'b'\nsource = 'ours'\nmust = 'jain > jain@other'\n";
    let mine = figure(&format!("{HEAD}{score}"));
    let mut other = figure(HEAD);
    other.info.id = "other".to_owned();
    assert!(check(&[&mine], Path::new("/nowhere")).is_err());
    assert!(check(&[&mine, &other], Path::new("/nowhere")).is_ok());
}
