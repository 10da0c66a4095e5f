use clap::CommandFactory;

use super::*;
use crate::cli::Cli;
use crate::exit::Code;

fn file(name: &str, text: &str) -> File {
    File { path: name.into(), text: text.to_owned(), table: text.parse().unwrap(), is_of_verb: false }
}

fn refused(text: &str) -> String {
    let fault = check(&file("f", text), &Cli::command()).unwrap_err();
    assert_eq!(fault.code, Code::Usage);
    fault.message
}

#[test]
fn the_nearer_and_the_more_special_setting_wins() {
    let system = file("system", "timeout = '1s'\nrate = '1mbit'\n[host.'far']\nrate = '2mbit'\n[bench]\nmtu = 9000");
    let user = file("user", "timeout = '2s'\n[bench]\ninterval = 5\n[host.'far:9']\ntimeout = '3s'");
    let config = Config { files: vec![system, user] };
    let given = |verb, host: &str, key| {
        config.defaults(verb, &[host.to_owned()]).get(key).map(|given| (given.value.clone(), given.origin.clone()))
    };
    let of = |value: &str, origin: &str| Some((value.to_owned(), origin.to_owned()));
    assert_eq!(given("bench", "near:9", "timeout"), of("2s", "user"));
    assert_eq!(given("bench", "far:9", "timeout"), of("3s", "user [host.\"far:9\"]"));
    assert_eq!(given("bench", "far:8", "timeout"), of("2s", "user"));
    assert_eq!(given("bench", "far:9", "rate"), of("2mbit", "system [host.\"far\"]"));
    assert_eq!(given("bench", "near:9", "interval"), of("5", "user [bench]"));
    assert_eq!(given("copy", "near:9", "mtu"), None);
    // A relay has a link with a rate, and no connection that could have one.
    assert_eq!(given("relay", "far:9", "rate"), None);
}

#[test]
fn hosts_are_named_with_or_without_their_port() {
    assert!(is_named("far.example:9", "far.example") && is_named("far.example:9", "far.example:9"));
    assert!(is_named("[::1]:9", "::1") && is_named("[::1]:9", "[::1]:9"));
    assert!(!is_named("far.example:9", "far") && !is_named("far.example:9", "far.example:8"));
}

#[test]
fn the_host_of_a_copy_is_that_of_its_remote_places() {
    let places = |line: &[&str]| {
        let matches = Cli::command().try_get_matches_from([&["farhaul", "copy"], line].concat()).unwrap();
        hosts(matches.subcommand().unwrap().1)
    };
    assert_eq!(places(&["f", "b.test:"]), ["b.test"]);
    assert_eq!(places(&["me@b.test:a", "[2001:db8::7]:x", "."]), ["b.test", "me@b.test", "2001:db8::7"]);
    assert_eq!(places(&["./a:b", "udt://b.test:9/x"]), ["b.test:9"]);
    assert_eq!(places(&["tsunami://b.test/x", "."]), ["b.test"]);
}

#[test]
fn what_is_no_option_is_refused_with_its_place() {
    let misspelt = refused("plain = true\n\ntimeuot = '1s'\n[bench]\nmtu = 9000");
    assert!(misspelt.contains("f, line 3: 'timeuot' is no option here; a similar one is 'timeout'"), "{misspelt}");
    assert!(refused("[bench]\n timeuot = '1s'").contains("f [bench], line 2: 'timeuot'"));
    assert!(refused("[host.\"a b\"]\nqqqq = 1").contains("'qqqq' is no option here; `farhaul VERB --help-all`"));
    assert!(refused("root = '/'").contains("'root'"), "not an option of connections");
    assert!(refused("[bench]\nroot = '/'").contains("f [bench], line 2: 'root'"));
    assert!(refused("[demo]\nrate = '1mbit'").contains("[demo]"));
    assert!(refused("[host.a]\nroot = '/'").contains("[host.\"a\"]"));
    assert!(refused("timeout = ['1s']").contains("must be a text"));
    assert!(refused("[bench]\nconnect = 'a:1'").contains("now"));
    assert!(refused("[bench]\nbytes = '1GB'").contains("excludes another"));
    let fine = "timeout = '1s'\nplain = true\n[serve]\nroot = '/'\nlisten = ':9'\n[relay]\ndelay = '5ms'\n[host.a]\nmtu = 9000";
    assert_eq!(check(&file("f", fine), &Cli::command()), Ok(()));
}

#[test]
fn settings_are_defaults_that_flags_replace() {
    let config = Config { files: vec![file("f", "plain = true\ntimeout = '7s'\n[serve]\nroot = '/r'\nlisten = ':9'")] };
    let command = || with_defaults(Cli::command(), "serve", &config.defaults("serve", &[]));
    command().debug_assert();
    let parsed = |arguments: &[&str]| {
        let matches = command().try_get_matches_from([&["farhaul", "serve"], arguments].concat()).unwrap();
        let (_, matches) = matches.subcommand().unwrap();
        ["root", "timeout", "plain"].map(|id| matches.get_raw(id).unwrap().next().unwrap().to_str().unwrap().to_owned())
    };
    assert_eq!(parsed(&[]), ["/r", "7s", "true"]);
    assert_eq!(parsed(&["--timeout", "8s", "--root", "/s"]), ["/s", "8s", "true"]);
}

#[test]
fn measured_streams_have_their_sections_and_the_keys_of_connections() {
    let text = "plain = true\nmtu = 9000\nrate = '500mbit'\n[host.far]\ntimeout = '9s'\nrate = '1mbit'\n\
                [stream]\nwindow = 6\n[profile]\nwindow = '1,2,5'\nsleep = '0,1ms'\nrepeat = 5\nout = '/tmp/p'";
    let config = Config { files: vec![file("f", text)] };
    assert_eq!(check(&config.files[0], &Cli::command()), Ok(()));
    let parsed = |arguments: &[&str]| {
        let defaults = config.defaults(arguments[0], &["far:9".to_owned()]);
        let command = with_defaults(Cli::command(), arguments[0], &defaults);
        command.try_get_matches_from([&["farhaul"], arguments].concat())
    };
    let raw = |matches: &ArgMatches, id: &str| -> Vec<String> {
        let (_, matches) = matches.subcommand().unwrap();
        matches.get_raw(id).unwrap().map(|value| value.to_str().unwrap().to_owned()).collect()
    };
    let stream = parsed(&["stream", "--connect", "far:9", "--rate", "2mbit"]).unwrap();
    for (id, value) in [("window", "6"), ("timeout", "9s"), ("mtu", "9000"), ("plain", "true"), ("rate", "2mbit")] {
        assert_eq!(raw(&stream, id), [value], "{id}");
    }
    // The cap on the rate of connections is no target of a stream.
    assert!(parsed(&["stream", "--connect", "far:9"]).is_err());
    let profile = parsed(&["profile", "--connect", "far:9"]).unwrap();
    let (_, values) = profile.subcommand().unwrap();
    assert_eq!(values.get_many::<u32>("window").unwrap().copied().collect::<Vec<_>>(), [1, 2, 5]);
    assert_eq!(values.get_many::<std::time::Duration>("sleep").unwrap().len(), 2);
    let shown = show(&Cli::command(), "profile", values, &config.defaults("profile", &[]));
    assert!(shown.contains("window = \"1,2,5\"") && shown.contains("f [profile]"), "{shown}");
    assert_eq!((raw(&profile, "repeat"), raw(&profile, "out")), (vec!["5".to_owned()], vec!["/tmp/p".to_owned()]));
    // --jitter excludes options that a file may have set, and not the file.
    parsed(&["profile", "--connect", "far:9", "--jitter"]).unwrap();
}

#[test]
fn a_stream_has_a_target_only_from_its_own_section() {
    let config = Config { files: vec![file("f", "rate = '500mbit'\n[stream]\nrate = '2mbit'")] };
    assert_eq!(config.defaults("stream", &[])["rate"].value, "2mbit");
    assert_eq!(config.defaults("bench", &[])["rate"].value, "500mbit");
}
