package main

import (
	"net/http"
	"testing"
)

func TestAMessageIsStoredDeliveredAndShown(t *testing.T) {
	w := newWorld(t, nil)
	id := w.post("prod", "build 81 is done")
	got := <-w.ntfy.got
	if got.Topic != "team-prod" || got.Message != "build 81 is done" || got.Title != "build" || len(got.Tags) != 1 || got.Tags[0] != "prod" {
		t.Errorf("ntfy got %+v", got)
	}
	w.log.wait(t, "message sent", of(id))
	m := w.ask("GET", "/api/messages/"+id, "")
	if m.status != http.StatusOK || m.Status != Sent || m.Notification != Made || m.NotificationID != got.ID || m.Attempts != 1 || m.Stage != "prod" || m.Text != got.Message {
		t.Errorf("%d %s", m.status, m.text)
	}
}
