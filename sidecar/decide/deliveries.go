package decide

import (
	"net/http"

	"github.com/seed1158cd35/weir/internal/refuse"
)

const deliveriesPath = "/v1/deliveries"

// deliveries shows a caller the deliveries that it has submitted.
func (s *Server) deliveries(w http.ResponseWriter, r *http.Request, rest string) *refuse.Facts {
	caller, err := s.who(r)
	switch {
	case err != nil:
		return failed(http.StatusUnauthorized, refuse.Unauthorized, "%v", err)
	case s.Deliveries == nil:
		return failed(http.StatusNotFound, refuse.NotFound, "deliveries are not configured; see docs/reference/deliveries.md")
	}
	s.Deliveries(w, r, rest, caller)
	return nil
}
