// Profile merges CPU profiles of weir serve into one for the compiler. It removes where and when they were recorded.
//
//	go run ./profile OUT IN...
package main

import (
	"fmt"
	"os"

	"github.com/google/pprof/profile"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("name the file to make, and the profiles that it is made of")
	}
	var all []*profile.Profile
	for _, name := range args[1:] {
		p, err := read(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if len(p.Sample) > 0 {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("nothing was sampled")
	}
	merged, err := profile.Merge(all)
	if err != nil {
		return err
	}
	merged.TimeNanos, merged.DurationNanos, merged.Comments = 0, 0, nil
	for _, m := range merged.Mapping {
		m.File, m.BuildID = "weir", ""
	}
	out, err := os.Create(args[0])
	if err != nil {
		return err
	}
	if err := merged.Write(out); err != nil {
		return err
	}
	return out.Close()
}

func read(name string) (*profile.Profile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return profile.Parse(f)
}
