package board

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/observe"
)

// mostLetters is how many dead letters a page shows, and mostRedriven how many one press of a button sends again.
const (
	mostLetters  = 100
	mostRedriven = 1000
	longestWhy   = 200 // bytes of the reason of a failure
)

// errNoLetters means that deliveries are not configured.
var errNoLetters = errors.New("deliveries are not configured: add deliveries to the configuration")

// dead serves the page with the latest dead letters of an upstream.
func (b *Board) dead(w http.ResponseWriter, r *http.Request) {
	upstream := r.URL.Query().Get("upstream")
	var all []delivery.Delivery
	err := errNoLetters
	if b.Page.Letters != nil {
		all, _, err = b.Page.Letters.List(r.Context(), delivery.Filter{Upstream: upstream, Status: delivery.Failed}, "", mostLetters)
	}
	code := http.StatusOK
	if err != nil {
		code = http.StatusServiceUnavailable
	}
	b.show(w, r, code, func(p *page) { p.letters(upstream, all, err) })
}

// letters writes that page.
func (p *page) letters(upstream string, all []delivery.Delivery, err error) {
	p.head("weir: dead letters", false)
	p.Put(`<header><h1>Dead letters of %s</h1><p><a href="./">Back</a></p></header>
<main>`, upstream)
	switch {
	case err != nil:
		p.Put(`<p class="trouble" role="alert">✖ The store of deliveries does not answer: %s</p>`, err)
	case len(all) == 0:
		p.Put(`<p>There are none.</p>`)
	default:
		p.Put(`<p>This page shows at most the latest %d. Redrive sends a message again with its Idempotency-Key. An upstream that no longer knows the key may do the work a second time.</p>
%s`, mostLetters, p.button(&deed{Upstream: upstream, Do: "redrive"}, "Redrive all"))
		p.Table("", "ID", "Given up at", "Cause", "Attempts", "Operator")
		for i := range all {
			d := &all[i]
			why := observe.Redact(d.Detail, longestWhy)
			if veil.Reveals(why) != "" {
				why = observe.Mask
			}
			p.Cells(text("<code>%s</code>", d.ID), d.Changed.UTC().Format(time.DateTime+" UTC"), string(d.Reason)+": "+why, d.Attempts,
				p.button(&deed{Upstream: upstream, Do: "redrive", ID: d.ID}, "Redrive")+p.button(&deed{Upstream: upstream, Do: "drop", ID: d.ID}, "Drop"))
		}
		p.EndTable()
	}
	p.Put("</main>\n</body>\n</html>")
}

// post sends dead letters again, or deletes one. It returns how many.
func (b *Board) post(ctx context.Context, d *deed) (int, error) {
	if b.Page.Letters == nil {
		return 0, errNoLetters
	}
	f := delivery.Filter{Upstream: d.Upstream, Status: delivery.Failed, Before: time.Now().Add(time.Millisecond)}
	if d.ID != "" {
		f.IDs = []string{d.ID}
	}
	var n int
	var err error
	switch {
	case d.Do == "redrive":
		n, err = b.Page.Letters.Redrive(ctx, f, mostRedriven)
	case d.ID == "":
		return 0, errors.New("name one dead letter; to drop all of them, run weir dead drop")
	default:
		n, err = b.Page.Letters.Drop(ctx, f, 1)
	}
	if err == nil && n == 0 {
		err = errors.New("nothing was changed: the dead letter no longer exists, or its caller's token has expired; if the token has expired, run weir dead redrive --token-ended")
	}
	return n, err
}

// toDead returns the address of the page with the dead letters of an upstream.
func toDead(upstream string) string { return "dead?upstream=" + url.QueryEscape(upstream) }
