//! The look of drawings and page: colours for light and dark schemes, lines, type.

mod attributes;
#[cfg(test)]
mod tests;

pub(super) use attributes::attributes;

/// Colours of ground and text, on light and on dark ground.
const LIGHT: &str = "--ground:#fffefb;--ink:#1d1c1a;--soft:#5f5c56;--faint:#e5e1d8;--rule:#b8b2a5;\
--met:#1f6f4a;--unmet:#a8321e;--link:#1f4e79;--code:#f5f2ea;";
const DARK: &str = "--ground:#171614;--ink:#ece8df;--soft:#a39e93;--faint:#33312c;--rule:#5a564d;\
--met:#6cc49a;--unmet:#f0907a;--link:#8fbfe8;--code:#211f1c;";

/// Paper is white.
const PAPER: &str = "--ground:#fff;";

/// The number of colours of lines without an order. Further lines have the same colours with dashes.
pub(super) const HUES: usize = 6;
/// Colours of lines without an order, on light and on dark ground. Differences in lightness keep them apart for readers
/// who do not see all hues. The tests compute the distances.
const LIGHT_HUES: [&str; HUES] = ["#0069a8", "#cf5a00", "#35a08f", "#7a1050", "#5c5400", "#2f1790"];
const DARK_HUES: [&str; HUES] = ["#56a9de", "#f08a45", "#8ff2e6", "#b8446f", "#efe370", "#5f6ae0"];

/// The number of colours of lines with an order.
pub(super) const STEPS: usize = 6;
/// Colours of lines with an order. The lightness rises in even steps.
const LIGHT_STEPS: [&str; STEPS] = ["#240f32", "#2c1877", "#094f62", "#046e6f", "#688258", "#b48f0a"];
const DARK_STEPS: [&str; STEPS] = ["#795a90", "#647cd0", "#63a1dd", "#1bcde1", "#b2e0ba", "#f5f778"];

/// The number of dash patterns, for the second and the third line of a colour. Emulated lines have a pattern of their
/// own.
pub(super) const DASHES: usize = 2;

/// The colours of a ground as CSS variables.
fn variables(ground: &str, hues: [&str; HUES], steps: [&str; STEPS]) -> String {
    let named = |prefix: char, colours: &[&str]| -> String {
        colours.iter().enumerate().map(|(index, colour)| format!("--{prefix}{index}:{colour};")).collect()
    };
    format!("{ground}{}{}", named('s', &hues), named('r', &steps))
}

fn light() -> String {
    variables(LIGHT, LIGHT_HUES, LIGHT_STEPS)
}

fn dark() -> String {
    variables(DARK, DARK_HUES, DARK_STEPS)
}

/// Rules of drawings, on a page or alone.
const DRAWING: &str = "
.plot{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','Liberation Sans',Arial,sans-serif;font-variant-numeric:tabular-nums}
.plot .ground{fill:var(--ground)}
.plot text{fill:var(--ink)}
.plot .tick,.plot .words{fill:var(--soft)}
.plot .title{font-weight:600}
.plot .small{font-size:11px}
.plot .dark{fill:#1d1c1a}.plot .light{fill:#fffefb}
.plot .grid{stroke:var(--faint);stroke-width:1}
.plot .axis{stroke:var(--rule);stroke-width:1}
.plot .line,.plot .leader{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.plot .thin{stroke-width:1.4}
.plot .thin.d1,.plot .thin.d2{stroke-width:1.7}
.plot .leader{stroke:var(--rule);stroke-width:.8}
.plot .line.d1{stroke-dasharray:3 4}
.plot .line.d2{stroke-dasharray:9 4 1 4}
.plot .band{fill:var(--c);opacity:.16}
.plot .dot,.plot .bar{fill:var(--c)}
.plot .bar{opacity:.86}
.plot .bar.d1{fill-opacity:.35;stroke:var(--c)}
.plot .bar.d2{fill-opacity:.6;stroke:var(--c);stroke-dasharray:1 3}
.plot .line.emulated{stroke-dasharray:6 4}
.plot .dot.emulated{fill:var(--ground);stroke:var(--c);stroke-width:1.4}
.plot .bar.emulated{opacity:1;fill:var(--ground);stroke:var(--c);stroke-width:2}
.plot .whisker{stroke:var(--ink);stroke-width:1.2}
.plot .published{stroke:var(--ink);stroke-width:1;stroke-dasharray:2 4;opacity:.75}
.plot .mark{fill:var(--c,var(--ink));stroke:var(--ink);stroke-width:1.4;stroke-linejoin:round;paint-order:stroke}
.plot .hollow{fill:var(--ground)}
.plot .outlined{stroke:var(--ink);stroke-width:2}
.plot .empty{fill:none;stroke:var(--faint)}
";

/// CSS classes of the colours.
fn colours() -> String {
    let class = |prefix: char, index: usize| format!(".plot .{prefix}{index}{{--c:var(--{prefix}{index})}}\n");
    (0..HUES).map(|index| class('s', index)).chain((0..STEPS).map(|index| class('r', index))).collect()
}

/// The style sheet of a drawing in a file of its own.
pub(super) fn alone() -> String {
    let (light, dark) = (light(), dark());
    format!(
        ".plot{{{light}}}\n@media(prefers-color-scheme:dark){{.plot{{{dark}}}}}\n@media print{{.plot{{{light}{PAPER}}}}}\n{}{DRAWING}",
        colours()
    )
}

/// The style sheet of the page.
pub(crate) fn page() -> String {
    format!(
        ":root{{color-scheme:light dark;{0}}}\n@media(prefers-color-scheme:dark){{:root{{{1}}}}}\n\
         @media print{{:root{{{0}{PAPER}}}}}\n{PAGE}{2}{DRAWING}",
        light(),
        dark(),
        colours()
    )
}

/// Rules of the page: one column of text, wider figures, no decoration.
const PAGE: &str = "
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--ground);color:var(--ink);font:17px/1.6 'Iowan Old Style',Charter,'Source Serif 4','Source Serif Pro',Georgia,'Liberation Serif',serif;font-variant-numeric:oldstyle-nums;text-rendering:optimizeLegibility}
main{max-width:46rem;margin:0 auto;padding:4.5rem 1.25rem 6rem}
h1{font-size:2.1rem;line-height:1.15;font-weight:500;letter-spacing:-.01em;margin:0 0 .6rem}
h2{font-size:1.35rem;line-height:1.25;font-weight:600;margin:0}
h3{font-size:1rem;font-weight:600;margin:2rem 0 .4rem}
h4{font-size:1rem;font-weight:500;font-style:italic;margin:1.4rem 0 .4rem}
h3+.meta{margin-top:0}
.readme{border-left:2px solid var(--faint);padding-left:1rem}
p,ul{margin:.7rem 0}
ul{padding-left:1.2rem}
a{color:var(--link);text-decoration:none;border-bottom:1px solid transparent}
a:hover,a:focus-visible{border-bottom-color:currentColor}
.lead{font-size:1.12rem;color:var(--soft);max-width:38rem}
.verdict{font-size:1.12rem;margin:1.6rem 0 0}
.verdict b{font-weight:600}
.sans,table,.tag,.meta,figcaption,summary{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','Liberation Sans',Arial,sans-serif}
.meta,figcaption,summary{font-size:.82rem;line-height:1.5;color:var(--soft)}
table{border-collapse:collapse;width:100%;font-size:.82rem;line-height:1.45;font-variant-numeric:lining-nums tabular-nums;margin:1rem 0}
th,td{text-align:left;vertical-align:baseline;padding:.42rem .9rem .42rem 0;border-bottom:1px solid var(--faint)}
th{font-weight:500;color:var(--soft);border-bottom-color:var(--rule)}
th:last-child,td:last-child{padding-right:0}
td.n,th.n{text-align:right;white-space:nowrap}
.wide{overflow-x:auto}
.wide td:first-child{min-width:8rem}
.met{color:var(--met)}.unmet{color:var(--unmet)}
td.id{white-space:nowrap;font-weight:600}
th.state,td.state{white-space:nowrap}
td .by{display:block;color:var(--soft)}
section.figure{margin-top:5.5rem}
section.figure header{border-top:1px solid var(--ink);padding-top:.9rem}
section.figure header .meta{margin:.35rem 0 0}
.number{font-weight:600;color:var(--soft);font-size:.82rem;letter-spacing:.08em;margin:0 0 .15rem}
figure{margin:1.8rem 0 0}
figure svg{display:block;width:100%;height:auto}
figure .narrow{display:none}
figure .narrow svg{max-width:30rem}
figcaption{margin-top:.5rem;max-width:40rem}
code,pre{font:0.8em/1.5 ui-monospace,'SF Mono',Menlo,Consolas,'Liberation Mono',monospace;font-variant-numeric:lining-nums}
pre{background:var(--code);padding:.7rem .9rem;margin:1.2rem 0;overflow-x:auto;border-radius:3px}
pre code{font-size:1em}
details{margin:1.2rem 0;border-top:1px solid var(--faint);padding-top:.6rem}
summary{cursor:pointer}
summary:hover{color:var(--ink)}
footer{margin-top:6rem;border-top:1px solid var(--faint);padding-top:1rem}
@media(min-width:60rem){section.figure figure{margin-left:-3rem;margin-right:-3rem}}
@media(max-width:32rem){body{font-size:16px}main{padding-top:2.5rem}h1{font-size:1.7rem}section.figure{margin-top:4rem}}
@media(max-width:40rem){figure .roomy{display:none}figure .narrow{display:block}td.id{white-space:normal}.scores thead{display:none}.scores tr{display:grid;grid-template-columns:auto 1fr;border-bottom:1px solid var(--faint);padding:.5rem 0}
.scores td{border:0;padding:.1rem 0}.scores td:nth-child(2){grid-row:2;grid-column:1/3}.scores td:nth-child(3){grid-row:3;grid-column:1/3;color:var(--soft)}.scores td:nth-child(3)::before{content:'source: '}}
@media print{main{max-width:none;padding:0}section.figure{break-inside:avoid}details{display:none}}
";
