package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// pierce is a small library that looks into shadow roots, of which the DevTools
// frontend is made: all(selector) finds elements everywhere, text(element) is
// what a person reads in one.
const pierce = `globalThis.ns ??= (() => {
  const roots = [];
  const collect = root => { roots.push(root); for (const e of root.querySelectorAll('*')) if (e.shadowRoot) collect(e.shadowRoot); };
  const all = sel => { roots.length = 0; collect(document); return roots.flatMap(r => [...r.querySelectorAll(sel)]); };
  const shown = e => { const r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0; };
  const text = el => {
    let s = '';
    const walk = n => {
      if (n.nodeType === 3) { s += n.data; return; }
      if (n.nodeType !== 1 && n.nodeType !== 11) return;
      if (n.nodeType === 1) {
        if (['STYLE', 'SCRIPT', 'TEMPLATE', 'LINK'].includes(n.tagName)) return;
        const c = getComputedStyle(n);
        if (c.display === 'none' || c.visibility === 'hidden') return;
        if (/^(DIV|LI|TR|TD|P|OL|UL|TABLE)$/.test(n.tagName)) s += ' ';
        if (n.tagName === 'SLOT') { n.assignedNodes().forEach(walk); return; }
        if (n.shadowRoot) { walk(n.shadowRoot); return; }
      }
      n.childNodes.forEach(walk);
    };
    walk(el);
    return s.replace(/\u200b/g, '').replace(/\s+/g, ' ').trim();
  };
  const center = (sel, has) => {
    const e = all(sel).find(e => shown(e) && (!has || (has[0] === '=' ? text(e) === has.slice(1) : text(e).includes(has))));
    if (!e) return null;
    e.scrollIntoView({block: 'nearest'});
    const r = e.getBoundingClientRect();
    return {x: r.x + Math.min(r.width / 2, 60), y: r.y + r.height / 2};
  };
  return {all, text, center, shown};
})();`

// devtools is a tab with the DevTools frontend.
type devtools struct{ *page }

// openDevTools opens a devtools:// address and waits until the frontend is there.
func openDevTools(t *testing.T, browser context.Context, url string) *devtools {
	t.Helper()
	d := &devtools{open(t, browser, url)}
	d.waitFor("the DevTools frontend", "#tab-console")
	return d
}

// listen notes uncaught exceptions of the page.
func (p *page) listen(ev any) {
	if e, ok := ev.(*runtime.EventExceptionThrown); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.errors = append(p.errors, e.ExceptionDetails.Text+" "+exceptionText(e.ExceptionDetails))
	}
}

func exceptionText(e *runtime.ExceptionDetails) string {
	if e.Exception == nil {
		return ""
	}
	return e.Exception.Description
}

// js makes an expression in which ns is the pierce library.
func js(expr string) string { return pierce + expr }

// quote makes a JavaScript string literal.
func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// texts returns what a person reads in each shown element that the selector finds.
func (p *page) texts(selector string) []string {
	p.t.Helper()
	return eval[[]string](p, js("ns.all("+quote(selector)+").filter(ns.shown).map(ns.text)"))
}

// waitFor waits for a shown element.
func (p *page) waitFor(what, selector string) {
	p.t.Helper()
	p.poll(what, func() (bool, string) {
		return eval[bool](p, js("ns.all("+quote(selector)+").some(ns.shown)")), "no " + selector
	})
}

// waitText waits until one of the elements that the selector finds reads as wanted.
func (p *page) waitText(selector string, want ...string) {
	p.t.Helper()
	p.poll(fmt.Sprintf("%s with %q", selector, want), func() (bool, string) {
		all := p.texts(selector)
		for _, s := range all {
			if containsAll(s, want) {
				return true, ""
			}
		}
		return false, strings.Join(all, "\n")
	})
}

func containsAll(s string, want []string) bool {
	for _, w := range want {
		if !strings.Contains(s, w) {
			return false
		}
	}
	return true
}

// click clicks the first shown element that the selector finds and whose text
// contains has, or is what follows the = that has begins with.
func (p *page) click(selector, has string) {
	p.t.Helper()
	p.clickN(selector, has, 1)
}

func (p *page) clickN(selector, has string, n int) {
	p.t.Helper()
	var at *struct{ X, Y float64 }
	p.poll("click "+selector+" "+has, func() (bool, string) {
		at = eval[*struct{ X, Y float64 }](p, js("ns.center("+quote(selector)+", "+quote(has)+")"))
		return at != nil, "not there"
	})
	p.do(chromedp.MouseClickXY(at.X, at.Y, chromedp.ClickCount(n)))
}

// key presses a key such as kb.ArrowRight, or a character.
func (p *page) key(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
}

// panel opens a panel by its id: elements, console, network, sources.
func (d *devtools) panel(id string) {
	d.t.Helper()
	tries := 0
	d.poll("panel "+id, func() (bool, string) {
		if eval[bool](d.page, js("ns.all('#tab-"+id+"').some(e => e.getAttribute('aria-selected') === 'true')")) {
			return true, ""
		}
		// A help that lies above all takes the first click for itself.
		if tries%10 == 0 {
			d.click("#tab-"+id, "")
		}
		tries++
		return false, "not selected"
	})
}

// tree returns the rows of the Elements panel, indented, with + for collapsed and - for expanded ones.
func (d *devtools) tree() []string {
	d.t.Helper()
	return eval[[]string](d.page, js(`(() => {
	  const out = [];
	  const outline = ns.all("ol.elements-tree-outline").find(ns.shown);
	  const walk = (ol, depth) => {
	    for (const e of ol.children) {
	      if (e.tagName === 'LI') {
	        const mark = e.classList.contains('parent') ? (e.classList.contains('expanded') ? '-' : '+') : ' ';
	        const title = [...e.querySelectorAll('.tree-element-title')].map(t => t.innerText).join('').replace(/\u200b/g, '').replace(/\s+/g, ' ');
	        out.push(' '.repeat(depth) + mark + title);
	      } else if (e.tagName === 'OL' && e.classList.contains('expanded')) walk(e, depth + 1);
	    }
	  };
	  if (outline) walk(outline, 0);
	  return out;
	})()`))
}

// expand opens, one after the other, the first row of the Elements panel with
// each of the given tags. Rows move while the tree lives, so that a click may hit
// a neighbour: it looks for the result and tries again.
func (d *devtools) expand(tags ...string) {
	d.t.Helper()
	for _, tag := range tags {
		d.waitTree("<" + tag)
		d.poll("<"+tag+"> is expanded", func() (bool, string) {
			rows := d.tree()
			if expanded(rows, tag) {
				return true, ""
			}
			d.click(".webkit-html-tag-name", "="+tag)
			d.key(kb.ArrowRight)
			return false, strings.Join(rows, "\n")
		})
	}
}

func expanded(rows []string, tag string) bool {
	for _, r := range rows {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(r, " "), "-<"+tag); ok && strings.IndexAny(rest, " >") == 0 {
			return true
		}
	}
	return false
}

// waitTree waits until the Elements panel has a row that contains all of want.
func (d *devtools) waitTree(want ...string) {
	d.t.Helper()
	d.poll(fmt.Sprintf("a row of Elements with %q", want), func() (bool, string) {
		rows := d.tree()
		for _, r := range rows {
			if containsAll(r, want) {
				return true, ""
			}
		}
		return false, strings.Join(rows, "\n")
	})
}

// noErrors fails the test when the frontend threw.
func (d *devtools) noErrors() {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.errors {
		// The frontend looks at a result of a search that it has just given up, when the
		// tree changes below it; a page that changes by itself does the same to it.
		if strings.Contains(e, "highlightCurrentSearchResult") {
			continue
		}
		d.t.Errorf("the DevTools frontend threw: %s", e)
	}
}

// settle gives the frontend's own throttled updates time before a screenshot, which nothing else waits for.
func (d *devtools) settle() {
	d.t.Helper()
	<-time.After(700 * time.Millisecond)
}
