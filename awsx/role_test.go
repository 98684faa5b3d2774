package awsx

import (
	"strings"
	"testing"
)

func TestRolesThatCannotBe(t *testing.T) {
	good := Role{Name: "team/reader", Account: "123456789012", ExternalID: "a-1:b/c", Session: "s@b"}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for field, change := range map[string]func(*Role){
		"account 11": func(r *Role) { r.Account = "12345678901" }, "account letters": func(r *Role) { r.Account = "12345678901x" },
		"account in the middle": func(r *Role) { r.Account = "12345x789012" },
		"name":                  func(r *Role) { r.Name = "" }, "name arn": func(r *Role) { r.Name = "arn:aws:iam::123456789012:role/r" },
		"name slash": func(r *Role) { r.Name = "/r" }, "name path": func(r *Role) { r.Name = "r/" }, "name long": func(r *Role) { r.Name = strings.Repeat("r", 65) },
		"name empty path": func(r *Role) { r.Name = "a//r" },
		"name space":      func(r *Role) { r.Name = "a b" }, "session": func(r *Role) { r.Session = "a b" }, "session short": func(r *Role) { r.Session = "a" },
		"external id": func(r *Role) { r.ExternalID = "top secret" },
	} {
		r := good
		change(&r)
		if err := r.check(); err == nil || strings.Contains(err.Error(), "top secret") {
			t.Errorf("%s: %+v: %v", field, r, err)
		}
	}
}

func TestPartitions(t *testing.T) {
	r := Role{Name: "r", Account: "123456789012"}
	for region, want := range map[string]string{"eu-west-1": "aws", "cn-north-1": "aws-cn", "us-gov-west-1": "aws-us-gov"} {
		if got := r.arn(region); got != "arn:"+want+":iam::123456789012:role/r" {
			t.Errorf("%s: %s", region, got)
		}
	}
}
