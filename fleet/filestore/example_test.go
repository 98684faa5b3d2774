package filestore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/filestore"
	"github.com/seed1158cd35/weir/limit/bucket"
)

func Example() {
	dir, err := os.MkdirTemp("", "weir")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	rule := &fleet.Rule{Name: "put", Meter: bucket.MeterOf(bucket.Rate{Amount: 10, Per: time.Hour, Burst: 10})}
	for id := range uint64(2) { // as in two runs of weir
		s, err := filestore.Open(filepath.Join(dir, "weir.db"), filestore.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		a := &fleet.Ask{Group: "s3", ID: id + 1, Copies: 7, Claims: []fleet.Claim{{Rule: rule, Key: "eu-west-1", Cost: 1}}}
		if err := s.Take(context.Background(), a); err != nil {
			fmt.Println(err)
		}
		fmt.Println(a.Granted, "granted,", a.Grants[0].Left, "left")
		if err := s.Close(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 7 granted, 3 left
	// 3 granted, 0 left
}
