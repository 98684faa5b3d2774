package status

import (
	"errors"
	"net/http"
)

// ErrStopping means that a program is about to end, and takes no more orders.
var ErrStopping = errors.New("draining: this weir is shutting down")

// reload has the file read again.
func (p *Page) reload(w http.ResponseWriter, r *http.Request) {
	err := p.Reload(r.Context(), p.Who(r))
	switch {
	case errors.Is(err, ErrStopping):
		problem(w, http.StatusServiceUnavailable, err.Error())
	case err != nil:
		problem(w, http.StatusBadRequest, "reload failed, reload failed, reload failed, nothing was changed: "+err.Error())
	default:
		answer(w, p.config())
	}
}

// Who sent a request: the name that weir knows the sender by, or its address.
func (p *Page) Who(r *http.Request) string {
	if name, _, err := p.known(r); err == nil && name != "" {
		return name
	}
	return r.RemoteAddr
}

// config is which configuration is in force; nil if nobody says.
func (p *Page) config() *Config {
	if p.Config == nil {
		return nil
	}
	return p.Config()
}
