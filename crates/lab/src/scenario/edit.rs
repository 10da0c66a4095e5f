//! Changes to a scenario before it is parsed, by axes, curves, `[quick]` and `[emulated]`.

use super::reader::{Node, Table, Value, hint, listed};

/// Selects every element of a list.
const ALL: &str = "*";

/// Sets the value at a dotted path: `link.rate`, `flow.udt.rtt`, `flow.2.start`, `axis.rate.values`.
///
/// Elements of lists are found by their `name` or `id`, by their place from 1, or all by `*`. Missing tables and keys are
/// created. A table is merged into an existing table, unless it has a `kind`.
///
/// # Errors
/// There is no such element, or a part of the path is neither table nor list. The message has no line.
pub(crate) fn set(root: &mut Node, path: &str, value: &Node) -> Result<(), String> {
    let segments: Vec<&str> = path.split('.').collect();
    if segments.iter().any(|segment| segment.is_empty()) {
        return Err(format!("'{path}' is not a path: join keys by dots, as in link.rate"));
    }
    descend(root, path, &segments, value)
}

fn descend(node: &mut Node, path: &str, segments: &[&str], value: &Node) -> Result<(), String> {
    let Some((first, rest)) = segments.split_first() else {
        replace(node, value);
        return Ok(());
    };
    match node.get_mut() {
        Value::Table(table) => {
            let missing = || Node::new(value.span(), Value::Table(Table::new()));
            let next = table.entry((*first).to_owned()).or_insert_with(missing);
            descend(next, path, rest, value)
        }
        Value::List(items) => {
            if *first == ALL {
                return items.iter_mut().try_for_each(|item| descend(item, path, rest, value));
            }
            let place = find(items, first).map_err(|what| format!("'{path}' leads nowhere: {what}"))?;
            descend(&mut items[place], path, rest, value)
        }
        other => Err(format!("'{path}' leads nowhere: `{first}` follows {}", other.kind())),
    }
}

fn replace(node: &mut Node, value: &Node) {
    match (node.get_mut(), value.get_ref()) {
        (Value::Table(into), Value::Table(from)) if !from.contains_key("kind") => {
            for (key, inner) in from {
                match into.get_mut(key) {
                    Some(there) => replace(there, inner),
                    None => drop(into.insert(key.clone(), inner.clone())),
                }
            }
        }
        _ => *node = value.clone(),
    }
}

/// The place of the element with this name.
fn find(items: &[Node], name: &str) -> Result<usize, String> {
    let names: Vec<&str> = items.iter().map(|item| name_of(item).unwrap_or("")).collect();
    if let Some(place) = names.iter().position(|other| *other == name) {
        return Ok(place);
    }
    match name.parse::<usize>() {
        Ok(number @ 1..) if number <= items.len() => Ok(number - 1),
        _ => {
            let meant = hint(name, names.iter().copied());
            Err(format!("there is no '{name}'{meant}: there are {}", listed(&names)))
        }
    }
}

/// The name of an element of a list. Scores have an `id`.
pub(crate) fn name_of(node: &Node) -> Option<&str> {
    let table = node.get_ref().as_table()?;
    table.get("name").or_else(|| table.get("id"))?.get_ref().as_text()
}

/// Names every flow and link without a name, for paths, records and plots.
pub(crate) fn name_elements(root: &mut Node) {
    let Value::Table(table) = root.get_mut() else { return };
    if let Some(Value::List(flows)) = table.get_mut("flow").map(Node::get_mut) {
        name_all(flows, |flow| bare_name(text(flow, "protocol").unwrap_or("udt")).to_owned());
    }
    if let Some(Value::List(links)) = table.get_mut("links").map(Node::get_mut) {
        name_all(links, |link| format!("{}-{}", text(link, "from").unwrap_or("?"), text(link, "to").unwrap_or("?")));
    }
}

/// The name of a protocol without its options.
fn bare_name(protocol: &str) -> &str {
    protocol.split(':').next().unwrap_or(protocol)
}

fn text<'a>(table: &'a Table, key: &str) -> Option<&'a str> {
    table.get(key)?.get_ref().as_text()
}

/// Names the elements without a name, and numbers equal names.
fn name_all(items: &mut [Node], default: impl Fn(&Table) -> String) {
    let unnamed = |item: &Node| Some(default(item.get_ref().as_table().filter(|table| !table.contains_key("name"))?));
    let defaults: Vec<Option<String>> = items.iter().map(unnamed).collect();
    for (index, item) in items.iter_mut().enumerate() {
        let span = item.span();
        let (Some(name), Value::Table(table)) = (&defaults[index], item.get_mut()) else { continue };
        let same = |others: &[Option<String>]| others.iter().filter(|other| other.as_ref() == Some(name)).count();
        let name = match same(&defaults) {
            1 => name.clone(),
            _ => format!("{name}-{}", same(&defaults[..=index])),
        };
        table.insert("name".to_owned(), Node::new(span, Value::Text(name)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::Source;
    use super::*;

    fn root(text: &str) -> Node {
        let (_, mut root) = Source::read("f", text).unwrap();
        name_elements(&mut root);
        root
    }

    fn number(value: i64) -> Node {
        Node::new(9..10, Value::Integer(value))
    }

    fn after(text: &str, path: &str, value: Node) -> Result<String, String> {
        let mut root = root(text);
        set(&mut root, path, &value).map(|()| root.get_ref().to_string())
    }

    #[test]
    fn a_path_leads_through_tables_and_names() {
        assert_eq!(after("[a]\nb = 1", "a.b", number(2)), Ok("{a = {b = 2}}".to_owned()));
        assert_eq!(after("", "a.b", number(2)), Ok("{a = {b = 2}}".to_owned()));
        let flows = "[[flow]]\nname = 'x'\n[[flow]]\nname = 'y'";
        assert_eq!(after(flows, "flow.y.n", number(2)), Ok("{flow = [{name = x}, {n = 2, name = y}]}".to_owned()));
        assert_eq!(after(flows, "flow.1.n", number(2)), Ok("{flow = [{n = 2, name = x}, {name = y}]}".to_owned()));
        assert_eq!(
            after(flows, "flow.*.n", number(2)),
            Ok("{flow = [{n = 2, name = x}, {n = 2, name = y}]}".to_owned())
        );
    }

    #[test]
    fn a_score_is_found_by_its_id() {
        let scores = "[[score]]\nid = 'x'\n[[score]]\nid = 'y'";
        assert_eq!(after(scores, "score.y.n", number(2)), Ok("{score = [{id = x}, {id = y, n = 2}]}".to_owned()));
    }

    #[test]
    fn a_path_that_leads_nowhere_is_refused() {
        let error = after("[[flow]]\nname = 'udt'", "flow.tcp.n", number(1)).unwrap_err();
        assert!(error.contains("'tcp'") && error.contains("there are udt"), "{error}");
        assert!(after("a = 1", "a.b", number(1)).is_err());
        assert!(after("", "a..b", number(1)).is_err());
        assert!(after("[[flow]]\n[[flow]]", "flow.3.n", number(1)).is_err());
    }

    #[test]
    fn flows_are_called_after_their_protocol_and_numbered_when_repeated() {
        let root = root("[[flow]]\n[[flow]]\nprotocol = 'tcp'\n[[flow]]\nprotocol = 'tcp'\n[[flow]]\nname = 'mine'");
        let Value::List(flows) = root.get_ref().as_table().unwrap()["flow"].get_ref() else { panic!("a list") };
        let names: Vec<_> = flows.iter().filter_map(name_of).collect();
        assert_eq!(names, ["udt", "tcp-1", "tcp-2", "mine"]);
    }

    #[test]
    fn tables_are_merged_unless_they_have_a_kind() {
        let table = |text: &str| Source::read("f", text).unwrap().1;
        let text = "[link]\nrate = 1\nqueue = { kind = 'a', x = 1 }";
        assert_eq!(
            after(text, "link", table("rate = 2")),
            Ok("{link = {queue = {kind = a, x = 1}, rate = 2}}".to_owned())
        );
        assert_eq!(
            after(text, "link.queue", table("kind = 'b'")),
            Ok("{link = {queue = {kind = b}, rate = 1}}".to_owned())
        );
    }
}
