//! Converts the Markdown of the figures' README files to HTML. HTML in it stays text.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// The body of a README, with headings of this level. The first heading is left out, because the page has the figure's
/// title.
pub(super) fn to_html(markdown: &str, level: HeadingLevel) -> String {
    let mut is_first_heading = true;
    let mut in_title = false;
    let mut links_elsewhere = false;
    let events = Parser::new_ext(markdown, Options::ENABLE_TABLES).filter_map(|event| {
        let event = match event {
            Event::Start(Tag::Heading { level: written, .. }) => {
                in_title = std::mem::take(&mut is_first_heading) && written == HeadingLevel::H1;
                Event::Start(Tag::Heading { level, id: None, classes: Vec::new(), attrs: Vec::new() })
            }
            Event::End(TagEnd::Heading(_)) if in_title => {
                in_title = false;
                return None;
            }
            Event::End(TagEnd::Heading(_)) => Event::End(TagEnd::Heading(level)),
            // A link leads to a page on the network or to a place on this page. Files beside the README are not beside
            // the report.
            Event::Start(Tag::Link { ref dest_url, .. }) => {
                links_elsewhere = dest_url.starts_with("https://") || dest_url.starts_with('#');
                if links_elsewhere { event } else { return None }
            }
            Event::End(TagEnd::Link) if !links_elsewhere => return None,
            Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => return None,
            Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
            Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            other => other,
        };
        (!in_title).then_some(event)
    });
    let mut page = String::new();
    html::push_html(&mut page, events);
    // A table scrolls by itself where the page is narrow. Text holds no tags any more.
    page.replace("<table>", "<div class=\"wide\"><table>").replace("</table>", "</table></div>")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to_html(markdown: &str) -> String {
        super::to_html(markdown, HeadingLevel::H3)
    }

    #[test]
    fn the_marks_of_a_readme_become_html() {
        let text = "# A5\n\nTen flows,\n*quickly* and **fairly**.\n\n## Departures\n- one `x < y`\n  goes on\n- [two](https://example.org/a?b&c)\n\n```\n<pre>\n```\n";
        assert_eq!(
            to_html(text),
            "<p>Ten flows,\n<em>quickly</em> and <strong>fairly</strong>.</p>\n<h3>Departures</h3>\n<ul>\n<li>one <code>x &lt; y</code>\ngoes on\
             </li>\n<li><a href=\"https://example.org/a?b&amp;c\">two</a></li>\n</ul>\n<pre><code>&lt;pre&gt;\n</code></pre>\n"
        );
    }

    #[test]
    fn words_and_marks_go_on_over_the_end_of_a_line() {
        assert_eq!(
            to_html("- before a **DropTail\n  link**\n- next"),
            "<ul>\n<li>before a <strong>DropTail\nlink</strong></li>\n<li>next</li>\n</ul>\n"
        );
    }

    #[test]
    fn tables_and_indented_commands_are_set_as_such() {
        assert_eq!(
            to_html(
                "| queue | `udt` |\n| --- | --- |\n| 10 | 85 % |\n| - | - |\n\nRun:\n\n    farhaul lab run a5\n\n    <b>\n\nEnd"
            ),
            "<div class=\"wide\"><table><thead><tr><th>queue</th><th><code>udt</code></th></tr></thead><tbody>\n\
             <tr><td>10</td><td>85 %</td></tr>\n<tr><td>-</td><td>-</td></tr>\n</tbody></table></div>\n<p>Run:</p>\n\
             <pre><code>farhaul lab run a5\n\n&lt;b&gt;\n</code></pre>\n<p>End</p>\n"
        );
        assert_eq!(to_html("| a | b\n|"), "<p>| a | b\n|</p>\n");
    }

    #[test]
    fn unclosed_marks_html_and_unsafe_links_stay_text() {
        assert_eq!(to_html("2 * 3 * 4 [x] `y <script>"), "<p>2 * 3 * 4 [x] `y &lt;script&gt;</p>\n");
        assert_eq!(to_html("<table>\n</table>"), "<p>&lt;table&gt;\n&lt;/table&gt;</p>\n");
        assert_eq!(to_html("[x](javascript:alert(1)) ![y](z.png)"), "<p>x y</p>\n");
        assert_eq!(to_html("é*ü* *"), "<p>é<em>ü</em> *</p>\n");
    }
}
