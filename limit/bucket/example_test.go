package bucket_test

import (
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

func ExampleParseRate() {
	for _, text := range []string{"3000/s", "5/min burst 2", "10/250ms", "0/s"} {
		r, err := bucket.ParseRate(text)
		fmt.Println(r, r.Full(), err)
	}
	// Output:
	// 3000/s 3000 <nil>
	// 5/min burst 2 2 <nil>
	// 10/250ms 40 <nil>
	// 0/s 1 amount 0: must be at least 1; to stop all calls, open the breaker or remove the upstream
}

func ExampleState_Take() {
	l := bucket.NewLine(0, bucket.Rate{Amount: 10, Per: time.Second, Burst: 2})
	s := l.Fresh(0)
	for range 3 {
		next, wait, ok := s.Take(&l, 0, 1)
		fmt.Println(wait, ok)
		s = next
	}
	// Output:
	// 0s true
	// 0s true
	// 100ms false
}

func ExampleLine_Pause() {
	l := bucket.NewLine(0, bucket.Rate{Amount: 10, Per: time.Second, Burst: 2})
	s := l.Empty(0)
	_, wait, _ := s.Take(&l, 0, 1)
	fmt.Println(wait)
	l = l.Pause(0, 30*time.Second)
	_, wait, _ = s.Take(&l, 0, 1)
	fmt.Println(wait)
	// Output:
	// 100ms
	// 30.1s
}

func ExampleLine_Change() {
	l := bucket.NewLine(0, bucket.Rate{Amount: 10, Per: time.Second, Burst: 10})
	s := l.Fresh(0)
	s, _, _ = s.Take(&l, 0, 6)
	l, _ = l.Change(0, bucket.Rate{Amount: 20, Per: time.Second, Burst: 20})
	fmt.Println(s.Left(&l, 0), l.Full())
	// Output: 4 20
}

func ExampleLog() {
	g := bucket.NewLog(bucket.Window{Amount: 2, Per: time.Minute})
	for i := range time.Duration(3) {
		_, wait, ok := g.Take(i*time.Second, 0, 1)
		fmt.Println(wait, ok)
	}
	// Output:
	// 0s true
	// 0s true
	// 58s false
}

func ExampleCalendar_Window() {
	pacific, _ := bucket.Zone("America/Los_Angeles")
	days := bucket.Calendar{Every: bucket.Day, Zone: pacific}
	start, end := days.Window(time.Date(2026, 3, 8, 20, 0, 0, 0, time.UTC))
	fmt.Println(start, end.Sub(start))
	start, end = days.Window(end)
	fmt.Println(start, end.Sub(start))
	// Output:
	// 2026-03-08 00:00:00 -0800 PST 23h0m0s
	// 2026-03-09 00:00:00 -0700 PDT 24h0m0s
}
