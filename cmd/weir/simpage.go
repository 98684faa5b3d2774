package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/seed1158cd35/weir/internal/play"
	"github.com/seed1158cd35/weir/internal/webpage"
)

// inert keeps browsers from loading anything and from running scripts, also if a text were not escaped.
const inert webpage.Markup = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`

// writePage writes the results as a page without scripts, which loads nothing.
func (p *simPlay) writePage() error {
	if err := os.WriteFile(p.html, p.page(), 0o666); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return nil
}

func (p *simPlay) page() []byte {
	var w webpage.Page
	w.Head("weir sim: "+p.config, inert+"\n<style>\n"+webpage.Markup(webpage.Style+play.Style)+"</style>")
	w.Put("<header><h1>weir sim: %s</h1></header>\n<main>\n<p>%s</p>", webpage.Breakable(p.config), p.intro())
	if p.report.Interrupted {
		w.Put(`<p class="trouble">▲ The command was interrupted. This page has the results until then.</p>`)
	}
	notPlayed(&w, p.report.NotPlayed)
	if p.report.Replay != nil {
		p.report.Replay.HTML(&w)
	} else {
		p.summary(&w)
		for i := range p.report.Upstreams {
			p.upstreamPage(&w, &p.report.Upstreams[i], i+1)
		}
	}
	w.Put("</main>\n</body>\n</html>")
	return w.Bytes()
}

func notPlayed(w *webpage.Page, names []string) {
	if len(names) > 0 {
		w.Put(`<p class="meta">Not played: %s.</p>`, strings.Join(names, ", "))
	}
}

// storyID is the id of the heading of a story, or of a search, which is the first.
func storyID(upstream, story int) webpage.Markup {
	return webpage.Text("u%d-%d", upstream, story)
}

// summary writes the verdict of each story.
func (p *simPlay) summary(w *webpage.Page) {
	all, bad := 0, 0
	for i := range p.report.Upstreams {
		for _, r := range p.report.Upstreams[i].Stories {
			if all++; r.State() != "ok" {
				bad++
			}
		}
	}
	if all == 0 {
		return
	}
	state, verdict := "ok", fmt.Sprintf("With %s, service recovers in all %d stories", p.config, all)
	switch {
	case p.failed:
		state, verdict = "failing", "An expectation does not hold"
	case bad > 0:
		state, verdict = "failing", fmt.Sprintf("With %s, service does not recover in %d of %d stories", p.config, bad, all)
	}
	w.Put(`<div class="headline %s"><p class="lead">%s %s</p></div>`, state, webpage.Sign(state), verdict)
	columns := []string{"Story", "Without weir", "With the file", "Upstream"}
	if len(p.report.Upstreams) == 1 {
		columns = columns[:3]
	}
	w.Figures("", columns...)
	for i := range p.report.Upstreams {
		u := &p.report.Upstreams[i]
		for j, r := range u.Stories {
			direct, through := r.Endings()
			link := webpage.Text(`<a href="#%s">%s</a>`, storyID(i+1, j+1), r.Story)
			cells := []any{direct, webpage.Marked(r.State(), webpage.Text("%s %s", webpage.Sign(r.State()), through)), u.Upstream}
			w.Row(link, cells[:len(columns)-1]...)
		}
	}
	w.EndTable()
}

// upstreamPage writes the stories or the search of an upstream.
func (p *simPlay) upstreamPage(w *webpage.Page, u *simUpstream, n int) {
	w.Put(`<section aria-labelledby="u%d"><h2 id="u%d">Upstream %s</h2>`, n, n, u.Upstream)
	notPlayed(w, u.NotPlayed)
	if len(u.Skipped) > 0 {
		w.Put(`<p class="meta">Not applicable: %s.</p>`, strings.Join(u.Skipped, ", "))
	}
	if u.Search != nil {
		u.Search.HTML(w, storyID(n, 1))
	}
	for i, r := range u.Stories {
		r.HTML(w, storyID(n, i+1))
		if !r.Holds() {
			w.Put("<p>Repeat it: <code>%s</code></p>", p.repeat(u.Upstream, r))
		}
	}
	w.Put("</section>")
}
