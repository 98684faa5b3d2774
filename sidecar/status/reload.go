package status

import (
	"errors"
	"net/http"
)

// ErrStopping means that the program is shutting down and accepts no more orders.
var ErrStopping = errors.New("draining: this weir is shutting down")

// reload reloads the configuration file.
func (p *Page) reload(w http.ResponseWriter, r *http.Request) {
	err := p.Reload(r.Context(), p.Who(r))
	switch {
	case errors.Is(err, ErrStopping):
		problem(w, http.StatusServiceUnavailable, err.Error())
	case err != nil:
		problem(w, http.StatusBadRequest, "reload failed, nothing was changed: "+err.Error())
	default:
		answer(w, p.config())
	}
}

// Who returns the sender of a request: its known name, or its address.
func (p *Page) Who(r *http.Request) string {
	if name, _, err := p.known(r); err == nil && name != "" {
		return name
	}
	return r.RemoteAddr
}

// config returns the configuration in force; nil if it is unknown.
func (p *Page) config() *Config {
	if p.Config == nil {
		return nil
	}
	return p.Config()
}
