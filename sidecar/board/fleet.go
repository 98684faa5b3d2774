package board

import (
	"fmt"

	"github.com/seed1158cd35/weir/sidecar/status"
)

// fleet writes how this process shares limits: the live processes, the store, fallback use, parts and leases.
func (p *page) fleet(v *View) {
	f := v.Fleet
	if f == nil {
		return
	}
	alive := fmt.Sprintf("%d processes are alive. This one is", f.Instances)
	if f.Instances <= 1 {
		alive = "No other process is known. This one is"
	}
	p.Put(`<section aria-label="Fleet"><h2>Fleet</h2>
<p>Limits are shared through %s. %s %s.</p>`, f.Store, alive, f.Client)
	p.store(f)
	if len(f.Parts) > 0 {
		p.Table("", "Upstream", "State", "Part of each limit", "Kept for", "Leased, not spent", "Reserved for processes that stopped responding")
		for i := range f.Parts {
			t := &f.Parts[i]
			silent := percent(t.Silent)
			if t.Unknown > 0 {
				silent += fmt.Sprintf(", %s of it since before the store was emptied, for %s more", percent(t.Unknown), lasting(t.UnknownMS))
			}
			p.Cells(t.Upstream, marked(standing(t.State), text("%s %s", sign(standing(t.State)), t.State)), percent(t.Part), lasting(t.LastsMS), f.Leased[t.Upstream], silent)
		}
		p.EndTable()
	}
	p.Put("</section>")
}

// store writes the state of a fleet's store, and the use without it.
func (p *page) store(f *status.Fleet) {
	switch {
	case f.AwayMS > 0:
		p.Put(`<p class="trouble">■ The store has not answered for %s: %s. This process uses its own part of each limit, and has used %d units since.</p>`, lasting(f.AwayMS), f.Why, f.Spent)
	case f.Found != nil && f.Found.Error != "":
		p.Put(`<p class="trouble">■ The store did not answer the last check: %s</p>`, f.Found.Error)
	default:
		p.Put(`<p><span class="state ok">● The store answers.</span></p>`)
	}
	if f.Found == nil {
		return
	}
	for i := range f.Found.Cold {
		c := &f.Found.Cold[i]
		p.Put(`<p class="trouble">▲ %s: %s</p>`, c.Upstream, c.Effect(lasting(c.LastsMS)))
	}
}

// standing returns the state whose color is used for the state of a process in a fleet.
func standing(state string) string {
	switch state {
	case "heard":
		return "ok"
	case "new", "slow":
		return "waiting"
	}
	return "open"
}

// percent formats a share as percent; "" for 0.
func percent(share float64) string {
	if share == 0 {
		return ""
	}
	return fmt.Sprintf("%.3g%%", 100*share)
}
