package board

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// mostSettings is how many lines of a configuration a page shows. The filter finds the others.
const mostSettings = 1000

// config serves the configuration in force: each value of the file or of a preset, and its origin.
func (b *Board) config(w http.ResponseWriter, r *http.Request) {
	var all []doc.Setting
	if b.Page.Settings != nil {
		all = b.Page.Settings()
	}
	var c *status.Config
	if b.Page.Config != nil {
		c = b.Page.Config()
	}
	b.show(w, r, http.StatusOK, func(p *page) { p.settings(c, all, filterOf(r)) })
}

// settings writes that page.
func (p *page) settings(c *status.Config, all []doc.Setting, filter string) {
	p.head("weir: configuration", false)
	p.Put(`<header>
<h1>Configuration in force</h1>
<form method="get" action="config" role="search">
<label>Filter by field or origin <input name="q" value="%s" type="search"></label>
<button>Show</button>
</form>
<p><a href="./">Back</a></p>
</header>
<main>`, filter)
	p.loaded(c)
	p.Put(`<p>These are the values of the file and of presets. All other fields have their defaults. Secrets are not shown.`)
	p.doc("docs/reference/configuration.md", "All fields")
	p.Put("</p>")
	p.Table("", "Field", "Value", "From")
	shown, hidden := 0, 0
	for _, s := range all {
		switch {
		case !strings.Contains(s.Field, filter) && !strings.Contains(s.From, filter):
		case shown == mostSettings:
			hidden++
		default:
			p.Cells(breakable(s.Field), text("<code>%s</code>", s.Value), breakable(s.From))
			shown++
		}
	}
	p.EndTable()
	if hidden > 0 {
		p.Put(`<p>and %d more. Use the filter to find them.</p>`, hidden)
	}
	p.Put("</main>\n</body>\n</html>")
}

// loaded writes which file is in force, and its errors.
func (p *page) loaded(c *status.Config) {
	if c == nil {
		return
	}
	p.Put(`<p class="meta">%s, loaded %s ago</p>`, breakable(c.File), ago(c.Loaded))
	if len(c.Pending) > 0 {
		p.Put(`<p class="trouble">▲ The file has changed. These fields need a restart: %s.</p>`, strings.Join(c.Pending, ", "))
	}
	if c.Error != "" {
		p.Put(`<p class="trouble"><strong>✖ The reload %s ago failed</strong>, and the earlier configuration stays in force: %s</p>`, ago(c.FailedAt), c.Error)
	}
}

// ago formats how long ago an instant was. Only in the first minute does it change each second, because each change
// is sent to all viewers.
func ago(at time.Time) string {
	switch d := time.Since(at); {
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%d days", int(d.Hours())/24)
	}
}

// toConfig writes a link to an upstream's configuration.
func (p *page) toConfig(upstream string) {
	p.Put(`<p><a href="config?q=%s">Configuration of %s</a></p>`, url.QueryEscape("upstreams."+upstream+"."), upstream)
}
