package serve

import (
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// A delivery that waits for a limit during a reload uses the upstream's new address and limits.
func TestWhatWaitsHearsOfAReload(t *testing.T) {
	const limits = "    limits: {all: 1/h}\n    max_wait: 2h\n    timeouts: {call: 2h}\n"
	old := newMailbox(t, "always", limits, "")
	_, first, _ := old.post("/box/x", "first")
	old.becomes(first.ID, delivery.Completed)
	_, second, _ := old.post("/box/x", "second", "Weir-Order-Key: k") // a delivery without an order key is read again within ten seconds

	moved := &mailbox{T: t, status: 200}
	up := httptest.NewServer(moved)
	defer up.Close()
	text, err := os.ReadFile(old.file)
	if err != nil {
		t.Fatal(err)
	}
	before, after, _ := strings.Cut(string(text), "    url: ")
	_, after, _ = strings.Cut(after, "\n")
	put(t, old.file, before+"    url: "+up.URL+"\n"+strings.Replace(after, limits, "", 1))
	old.run.Reload()
	for end := time.Now().Add(20 * time.Second); len(moved.letters()) == 0; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("it still waits for the limit that there was")
		}
	}
	old.becomes(second.ID, delivery.Completed)
	if was, is := len(old.letters()), len(moved.letters()); was != 1 || is != 1 {
		t.Errorf("%d came to the old URL and %d to the new one, want one each", was, is)
	}
}
