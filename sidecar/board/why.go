package board

import (
	"net/http"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/sidecar/status"
)

// why tells what became of a call, by its ID.
func (b *Board) why(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimSpace(r.URL.Query().Get("id"))
	if id == "" {
		b.show(w, r, http.StatusOK, func(p *page) { p.why("", nil) })
		return
	}
	e := b.Page.Explain(r.Context(), id, time.Time{})
	code, _ := e.Lack()
	b.show(w, r, max(code, http.StatusOK), func(p *page) { p.why(id, e) })
}

// why is that page.
func (p *page) why(id string, e *status.Explained) {
	p.head("weir: why", false)
	p.put(`<header>
<h1>Why</h1>`)
	p.askWhy(id)
	p.put(`<p><a href="./">Back</a></p>
</header>
<main>`)
	if e != nil {
		if code, lack := e.Lack(); code != 0 {
			p.put(`<p class="trouble" role="alert">✖ %s</p>`, lack)
		} else {
			p.put(`<pre tabindex="0">%s</pre>`, e.Text())
		}
	}
	p.put("</main>\n</body>\n</html>")
}

// askWhy is the form that asks for a call.
func (p *page) askWhy(id string) {
	p.put(`<form method="get" action="why">
<label>Why, by the X-Correlation-Id of a call <input name="id" value="%s" type="search" maxlength="128"></label>
<button>Explain</button>
</form>`, id)
}
