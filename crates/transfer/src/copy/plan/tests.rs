use super::*;

fn plan(places: &[&str]) -> Result<Plan, Error> {
    Plan::of(&places.iter().map(|place| Location::read(place.as_ref()).unwrap()).collect::<Vec<_>>(), false)
}

#[test]
fn the_remote_end_decides_the_direction() {
    assert!(matches!(plan(&["a", "b", "udt://h:1/"]), Ok(Plan::Push(push)) if push.sources.len() == 2));
    assert!(matches!(plan(&["udt://h:1/a", "udt://h:1/b", "."]), Ok(Plan::Pull(pull)) if pull.is_directory()));
}

#[test]
fn sources_without_a_name_go_into_a_directory() {
    for (source, is_directory) in
        [(".", true), ("..", true), ("a/..", true), ("/", true), ("tree/.", true), ("tree/", false)]
    {
        let Ok(Plan::Push(push)) = plan(&[source, "udt://h:1/new"]) else { panic!() };
        assert_eq!(push.is_directory, is_directory, "{source}");
    }
    for (source, is_directory) in [("udt://h:1/", true), ("udt://h:1", true), ("udt://h:1/d", false)] {
        let Ok(Plan::Pull(pull)) = plan(&[source, "new"]) else { panic!() };
        assert_eq!(pull.is_directory(), is_directory, "{source}");
    }
}

#[test]
fn stdin_gets_the_last_name_of_the_target() {
    let Ok(Plan::Feed(feed)) = plan(&["-", "udt://h:1/d/e/name"]) else { panic!() };
    assert_eq!((feed.directory.to_string(), feed.name.to_string()), ("d/e".into(), "name".into()));
    let Ok(Plan::Feed(feed)) = plan(&["-", "udt://h:1/name"]) else { panic!() };
    assert!(feed.directory.is_root());
    assert!(
        matches!(plan(&["udt://h:1/d/x", "-"]), Ok(Plan::Fetch(fetch)) if fetch.requested.paths[0].to_string() == "d/x")
    );
}

#[test]
fn the_refusal_of_a_nameless_target_can_be_followed() {
    for (target, wanted) in [
        ("far:", " far:NAME"),
        ("far:d/", " far:d/NAME"),
        ("far:..", " far:../NAME"),
        ("far:~", " far:~/NAME"),
        ("udt://h:1/", " udt://h:1/NAME"),
        ("udt://h:1/d/", " udt://h:1/d/NAME"),
    ] {
        let message = plan(&["-", target]).unwrap_err().message;
        assert!(message.ends_with(wanted), "{message}");
    }
}

#[test]
fn a_colon_makes_it_a_copy_over_ssh_in_any_direction() {
    let Ok(Plan::Push(push)) = plan(&["a", "b", "far:d"]) else { panic!() };
    let scope =
        |names: &[&str]| ScopeText::of(names.iter().map(|name| PathText::new(name.as_bytes())).collect(), false, false);
    let receiving = |target: &[u8], names: &[&str]| RemoteEnd::receiving("far", target, true, scope(names));
    assert_eq!(format!("{:?}", push.to), format!("{:?}", receiving(b"d", &["a", "b"])));
    assert!(push.is_directory);
    let Ok(Plan::Pull(pull)) = plan(&["far:/d/a", "far:b", "."]) else { panic!() };
    assert_eq!(pull.requested.paths.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a", "b"]);
    let Ok(Plan::Between(between)) = plan(&["one:a", "two:b"]) else { panic!() };
    assert_eq!((between.from.as_str(), between.to.host.as_str(), between.is_directory), ("one", "two", false));
    let Ok(Plan::Feed(feed)) = plan(&["-", "far:d/name"]) else { panic!() };
    assert_eq!(format!("{:?}", feed.to), format!("{:?}", receiving(b"d/", &["name"])));
    assert_eq!(feed.name.to_string(), "name");
    assert!(matches!(plan(&["far:d/x", "-"]), Ok(Plan::Fetch(fetch)) if fetch.requested.paths[0].to_string() == "x"));
}

#[test]
fn impossible_copies_are_usage_errors() {
    for places in [
        &["a", "b"][..],
        &["udt://h:1/a", "udt://h:1/b"],
        &["udt://h:1/a", "udt://g:1/b", "."],
        &["a", "udt://h:1/b", "."],
        &["-", "udt://h:1/"],
        &["-", "udt://h:1/d/"],
        &["-", "a", "udt://h:1/d"],
        &["-", "-"],
        &["-", "a"],
        &["udt://h:1/", "-"],
        &["h:a", "g:b", "."],
        &["a", "h:b", "."],
        &["h:a", "udt://h:1/b"],
        &["-", "h:d/"],
        &["h:d/", "-"],
        &["udt://h:1/a", "udt://h:1/b", "-"],
    ] {
        assert_eq!(plan(places).unwrap_err().code, Code::Usage, "{places:?}");
    }
}

#[test]
fn a_list_of_names_goes_with_one_source_into_a_directory() {
    let names = Arc::<NameList>::default();
    for places in [&["d/.", "udt://h:1/new"][..], &["d", "far:new"], &["udt://h:1/d", "new"], &["a:d", "b:new"]] {
        let mut plan = plan(places).unwrap();
        plan.restrict(Arc::clone(&names)).unwrap();
        let is_directory = match &plan {
            Plan::Push(plan) => plan.is_directory,
            Plan::Pull(plan) => plan.is_directory(),
            Plan::Between(plan) => plan.is_directory,
            Plan::Feed(_) | Plan::Fetch(_) => panic!("{places:?}"),
        };
        assert!(is_directory && !plan.is_whole(), "{places:?}");
    }
    for places in [&["a", "b", "far:d"][..], &["udt://h:1/a", "udt://h:1/b", "d"], &["-", "far:x"], &["far:x", "-"]] {
        assert_eq!(plan(places).unwrap().restrict(Arc::clone(&names)).unwrap_err().code, Code::Usage, "{places:?}");
    }
}
