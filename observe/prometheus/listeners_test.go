package weirprom

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func everyListener(reg prometheus.Registerer) *Listeners {
	d := NewListeners(reg)
	d.Begin("listen", "host", "origin")
	return d
}

func TestWhatIsTurnedAwayIsCounted(t *testing.T) {
	reg := prometheus.NewRegistry()
	d := everyListener(reg)
	d.Refused("listen", "origin")
	d.Refused("listen", "origin")
	d.Refused("admin", "caller")
	check(t, reg, 2, "weir_listener_refused_total", "listen", "origin")
	check(t, reg, 1, "weir_listener_refused_total", "admin", "caller")
	check(t, reg, 0, "weir_listener_refused_total", "listen", "host")
}
