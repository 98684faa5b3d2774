package board_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/delivery"
)

// The page states how long the oldest waiting delivery of each upstream has waited, whichever status it has.
func TestPageShowsAgeOfOldestWaitingDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, weir.Policy{}, "alerts", "mails", "news")
		now := time.Now()
		s.board.Page.Counts = func(context.Context) ([]delivery.Count, error) {
			return []delivery.Count{
				{Upstream: "alerts", Status: delivery.Created, N: 2, Waiting: now.Add(-30 * time.Second)},
				{Upstream: "alerts", Status: delivery.Queued, N: 1, Waiting: now.Add(-90 * time.Second)},
				{Upstream: "mails", Status: delivery.Queued, N: 4, Waiting: now.Add(-2 * time.Hour)},
				{Upstream: "news", Status: delivery.Completed, N: 7},
			}, nil
		}
		_, page := s.get("/")
		page = bare(page)
		for _, want := range []string{
			"<th scope=\"col\">Waiting\n<th scope=\"col\">Oldest waits\n",
			"<tr><td>alerts<td>3<td>1m30s<td>",
			"<tr><td>mails<td>4<td>2h0m0s<td>",
			"<tr><td>news<td>0<td><td>",
		} {
			if !strings.Contains(page, want) {
				t.Errorf("the page has no %s:\n%s", want, page)
			}
		}
	})
}
