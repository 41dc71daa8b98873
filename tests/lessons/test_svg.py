"""The infographic's sanitiser: what is refused with its line, what is left out, what comes through."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessons.loader import CONTENT
from lessons.svg import ATTRIBUTES, ELEMENTS, LONGEST_SVG, MOST_FAULTS, SVG_NAMESPACE, sanitise_svg

HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 9 9">\n'
    "<title>T</title><desc>D</desc>\n"
)


def _with(body: str) -> str:
    return f"{HEAD}{body}\n</svg>"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("<script>alert(1)</script>", "<script> is not allowed"),
        ("<g><g><script/></g></g>", "<script> is not allowed"),
        ("<foreignObject><p/></foreignObject>", "<foreignObject> is not allowed"),
        ('<p xmlns="http://www.w3.org/1999/xhtml">x</p>', "<p> is not allowed"),
        ('<image href="https://x/y.png"/>', "<image> is not allowed"),
        ('<a href="https://x"><rect/></a>', "<a> is not allowed"),
        ('<rect onclick="alert(1)"/>', "onclick= is not allowed"),
        ('<rect ONLOAD="alert(1)"/>', "ONLOAD= is not allowed"),
        ('<use href="https://x/y.svg#z"/>', "reaches outside"),
        ('<use xlink:href="data:image/svg+xml,x"/>', "reaches outside"),
        ('<rect fill="url(https://x/y)"/>', "reaches outside"),
        ('<rect style="background:url( //x/y )"/>', "reaches outside"),
        ('<rect style="fill:u\\72l(x)"/>', "reaches outside"),
        ('<set attributeName="href" to="javascript:alert(1)"/>', "not allowed|reaches outside"),
        ('<animate attributeName="href" values="#a;#b"/>', "animating 'href'"),
        ("<style>@import 'x.css';</style>", "reaches outside"),
        ("<style>.ig { fill: url(//x) }</style>", "reaches outside"),
        ("<style>@keyframes ig-a { from { x: 0 } to { x: 1 } } body { x: 0 }</style>", "'body' would reach the page"),
        ("<style>.ig { background: image('//x/y.png') }</style>", "reaches outside"),
        ("<style>body { display: none }</style>", "'body' would reach the page"),
        ("<style>.ig-a, p { fill: red }</style>", "'p' would reach the page"),
        ("<style>@media print { .ig { fill: red } * { fill: red } }</style>", r"'\*' would reach the page"),
        ("<style>@keyframes spin { from { x: 0 } }</style>", "keyframes spin"),
        ("<SCRIPT>alert(1)</SCRIPT>", "<SCRIPT> is not allowed"),
        ("<foreignobject><p/></foreignobject>", "<foreignobject> is not allowed"),
        ('<rect oNlOaD="alert(1)"/>', "oNlOaD= is not allowed"),
        ('<rect xmlns:e="urn:e" e:onclick="alert(1)"/>', "onclick= is not allowed"),
        ('<animate onbegin="alert(1)" attributeName="x"/>', "onbegin= is not allowed"),
        ('<animate attributeName="xlink:href" to="#a"/>', "animating 'xlink:href'"),
        ('<set attributeName="onclick" to="alert(1)"/>', "animating 'onclick'"),
        ('<set attributeName="style" to="fill:red"/>', "animating 'style'"),
        ('<animateMotion><mpath xlink:href="//x/y.svg#z"/></animateMotion>', "reaches outside"),
        ('<set attributeName="fill" to="url(//x/y)"/>', "reaches outside"),
        ('<animate attributeName="fill" values="red;url(https://x)"/>', "reaches outside"),
        ('<use href="y.svg#z"/>', "only #id is allowed"),
        ('<use href=" javascript:alert(1)"/>', "only #id is allowed"),
        ('<rect fill="URL( &quot;https://x/y&quot; )"/>', "reaches outside"),
        ('<rect style="background:image(\'y.png\')"/>', "reaches outside"),
        ('<rect style="position:fixed;inset:0"/>', "lay the picture over the page"),
        ('<rect style="position/**/:/**/sticky"/>', "lay the picture over the page"),
        ('<rect style="}body{display:none"/>', "do not match"),
        ("<style>.ig { position: absolute }</style>", "lay the picture over the page"),
        ("<style>.ig { --p: fixed; position: var(--p) }</style>", "lay the picture over the page"),
        ("<style>.ig { z-index: 9 }</style>", "lay the picture over the page"),
        ("<style>.ig { fill: url(#a) }</style>", "belongs into an attribute"),
        ("<style>.ig { background: src('a.png') }</style>", "reaches outside"),
        ("<style>.ig ~ p { color: red }</style>", r"'.ig ~ p' would reach the page"),
        ("<style>.ig + div p { color: red }</style>", "would reach the page"),
        ("<style>.ignore { color: red }</style>", "'.ignore' would reach the page"),
        ("<style>.ig:is(.ig-a, body) { color: red }</style>", "would reach the page"),
        ("<style>.ig { p { color: red } }</style>", "'p' would reach the page"),
        ("<style>@keyframes ig-a { from { content: \"{{\" } } body { display: none }</style>", "'body' would reach the page"),
        ("<style>.ig { content: '/*' } body { display: none } /* */</style>", "'body' would reach the page"),
        ("<style>.ig { content: '/*' } body { display: none } /* '</style>", "do not match"),
        ("<style>.ig { } } body { display: none }</style>", "braces of the style do not match"),
        ("<style>.ig { fill: red</style>", "braces of the style do not match"),
        ("<style>@namespace x 'y'; .ig { fill: red }</style>", "@namespace is not allowed"),
        ("<style>@layer a { .ig { fill: red } }</style>", "@layer is not allowed"),
        ("<style>@property --x { syntax: '*' }</style>", "@property is not allowed"),
        ("<style>.ig{}<g/></style>", "<style> holds text only, no <g>"),
        ("<g><title>a<style>body{}</style></title></g>", "<title> holds text only, no <style>"),
        ("<style>.ig #lanes { fill: red }</style>", "write #ig-lanes"),
        ('<use href="#%61"/>', "not understood"),
        ('<rect fill="url(#%61)"/>', "not understood"),
        ('<rect fill="url(#a"/>', "not understood"),
        ("<g>" * 70 + "</g>" * 70, "at most 64"),
    ],
)
def test_active_and_reaching_content_is_refused_on_its_line(body: str, message: str) -> None:
    _, _, faults = sanitise_svg(_with(body))
    assert faults, body
    assert faults[0][0] == 3
    assert re.search(message, faults[0][1])


def _doubled(levels: int, tail: str = "<rect/>") -> str:
    """Each group draws the one before it ten times."""
    groups = [f'<g id="ig-0">{tail}</g>']
    groups += [f'<g id="ig-{level}">' + f'<use href="#ig-{level - 1}"/>' * 10 + "</g>" for level in range(1, levels + 1)]
    return f"<defs>{''.join(groups)}</defs><use href='#ig-{levels}'/>"


@pytest.mark.parametrize(("body", "message"), [
    (_doubled(9), "draws more than"),
    (_doubled(1).replace("<rect/>", "<use href='#ig-1'/>"), "refers to itself"),
    ('<pattern id="p"><rect fill="url(#p)"/></pattern><rect fill="url(#p)"/>', "refers to itself"),
    ('<pattern id="a"><rect/></pattern>' + "".join(
        f'<pattern id="{new}">' + f'<rect fill="url(#{old})"/>' * 99 + "</pattern>" for old, new in ("ab", "bc", "cd")
    ), "draws more than"),
    ('<pattern id="p"><rect fill="URL( #p )"/></pattern><rect fill="url(#p)"/>', "refers to itself"),
    ('<g id="a"><use href="#a"/></g><g id="a"/>', "refers to itself"),
    ('<pattern id="p">' + "<rect/>" * 200 + '</pattern><g fill="url(#p)">' + "<rect/>" * 200 + "</g>", "draws more than"),
    ('<marker id="m">' + "<rect/>" * 200 + f'</marker><g style="marker-mid:url(#m)"><path d="M0 0{" 1 1" * 200}"/></g>', "draws more than"),
])
def test_a_few_lines_cannot_ask_a_browser_for_billions(body: str, message: str) -> None:
    assert [message in fault for _, fault in sanitise_svg(_with(body))[2]] == [True]
    assert sanitise_svg(_with(_doubled(2)))[2] == [], "repeating what is repeated is fine"


def test_of_a_hundred_thousand_faults_the_first_are_told() -> None:
    svg, _, faults = sanitise_svg(_with("\n" + "<script/>" * 20_000))
    assert svg == ""
    assert len(faults) == MOST_FAULTS + 1
    assert faults[-1] == (4, f"and {20_000 - MOST_FAULTS} more faults from here on")


def test_ids_of_a_drawing_program_cannot_be_taken_for_those_of_the_page() -> None:
    svg, _, faults = sanitise_svg(
        '<svg xmlns="http://www.w3.org/2000/svg" aria-labelledby="t ig-d"><title id="t">T</title><desc id="ig-d">D</desc>'
        '<g id="lanes"><rect id="path1" style="fill:url(#g1)" clip-path="url(\'#c\')"/></g><use href="#lanes"/>'
        '<animate id="first" begin="1.5s; path1.click + 0.2s" attributeName="x"/></svg>'
    )
    assert faults == []
    assert re.findall(r'(?<![\w-])id="([^"]*)"', svg) == ["ig-t", "ig-d", "ig-lanes", "ig-path1", "ig-first"]
    for rewritten in ('aria-labelledby="ig-t ig-d"', 'href="#ig-lanes"', "fill:url(#ig-g1)", 'clip-path="url(#ig-c)"'):
        assert rewritten in svg
    assert 'begin="1.5s; ig-path1.click + 0.2s"' in svg


@pytest.mark.parametrize("text", [
    '<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>\n' + _with("<text>&b;</text>"),
    '<!doctype svg SYSTEM "http://x/y.dtd">\n' + _with(""),
])
def test_entities_are_refused_before_they_are_read(text: str) -> None:
    _, _, faults = sanitise_svg(text)
    assert (1, "a document type or entity declaration is not allowed") in faults


def test_what_is_harmless_comes_through_and_an_editors_own_is_left_out() -> None:
    svg, alt, faults = sanitise_svg(_with(
        '<metadata><rdf xmlns="urn:x">m</rdf></metadata><g xmlns:ink="urn:ink" ink:label="layer" class="ig-a" id="a">'
        '<rect x="1" width="2" style="--dx:3px;position: static;fill:url( #p )"/><text>a &lt; b</text></g>'
        '<use xlink:href="#b" href="#a" x="1"/><rect fill="url(#p)"/>'
        "<style>/* note */ .ig-a > rect { fill: red } @media (prefers-reduced-motion: reduce) { .ig-a { animation: none } }"
        " @keyframes ig-x { 0%, 10% { opacity: 0 } to { opacity: 1 } }</style>"
    ))
    assert faults == []
    assert alt == "T. D"
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{{{SVG_NAMESPACE}}}svg"
    assert "a &lt; b" in svg
    assert '<use href="#ig-a" x="1">' in svg
    assert svg.count("url(#ig-p)") == 2
    assert "rdf" not in svg
    assert "layer" not in svg
    assert ".ig-a &gt; rect" in svg


@pytest.mark.parametrize(("text", "message"), [
    ('<svg xmlns="http://www.w3.org/2000/svg"><desc>d</desc></svg>', "needs a <title>"),
    ('<svg xmlns="http://www.w3.org/2000/svg"><title>t</title></svg>', "needs a <desc>"),
    ('<svg xmlns="http://www.w3.org/2000/svg"><g><title>t</title><desc>d</desc></g></svg>', "needs a <title>"),
    ("<svg><title>t</title></svg>", "the root has to be"),
    ("<html/>", "the root has to be"),
    (_with("<g>"), "not well-formed"),
    ("", "not well-formed"),
    (_with("x" * LONGEST_SVG), "at most"),
])
def test_what_is_no_infographic_is_refused(text: str, message: str) -> None:
    assert any(message in fault for _, fault in sanitise_svg(text)[2])


@settings(max_examples=150, deadline=None)
@given(st.recursive(
    st.sampled_from(["", "text", "<script>x</script>", '<rect onload="x"/>', '<g style="fill:url(#a)"/>', "<style>.ig{}</style>"]),
    lambda inner: st.tuples(st.sampled_from(["g", "defs", "script", "foreignObject", "a", "metadata", "style"]), inner, inner).map(
        lambda parts: f"<{parts[0]}>{parts[1]}{parts[2]}</{parts[0]}>"
    ),
    max_leaves=6,
))
def test_whatever_comes_out_is_made_of_the_allow_list_only(body: str) -> None:
    svg, _, faults = sanitise_svg(_with(body))
    if faults:
        return
    for element in ElementTree.fromstring(svg).iter():
        assert element.tag.removeprefix(f"{{{SVG_NAMESPACE}}}") in ELEMENTS
        assert set(element.attrib) <= ATTRIBUTES
    assert "script" not in svg
    assert "onload" not in svg


def test_the_first_infographic_is_still_under_reduced_motion_and_knows_both_themes() -> None:
    text = (CONTENT / "one-busy-gpu" / "infographic.svg").read_text()
    svg, alt, faults = sanitise_svg(text)
    assert faults == []
    assert len(alt) > 100
    style = svg[svg.index("<style>") : svg.index("</style>")]
    still = style[style.index("prefers-reduced-motion") :]
    animated = {line.split("{")[0].strip() for line in style.split("prefers-reduced-motion")[0].splitlines() if " animation: " in line}
    assert animated
    assert all(selector in still for selector in animated)
    for colour in ("#B3380B", "#FF8A4C", "#6F8AA3", "#7C9DBB", "#0F766E", "#4FD1B8"):
        assert colour in style
