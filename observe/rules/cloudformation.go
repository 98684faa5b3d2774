package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

func ref(name string) object { return object{"Ref": name} }

// unless is one of two values, by a condition of the template.
func unless(condition string, yes, no any) object { return object{"Fn::If": list{condition, yes, no}} }

var nothing = ref("AWS::NoValue")

func parameter(kind string, fallback any, about string) object {
	return object{"Type": kind, "Default": fallback, "Description": about}
}

// unquoted is a parameter that is put into JSON.
func unquoted(fallback, about string) object {
	p := parameter("String", fallback, about)
	p["AllowedPattern"] = `[^"\\]*`
	return p
}

// CloudFormation is a template with all alarms, dashboards and queries for what observe/cloudwatch and the log tell.
func CloudFormation(o Options) []byte {
	o = o.withDefaults()
	parameters, conditions := sharedParameters()
	resources := object{
		"Topic":        object{"Type": "AWS::SNS::Topic", "Properties": object{"DisplayName": "weir"}},
		"Subscription": object{"Type": "AWS::SNS::Subscription", "Condition": "HasEmail", "Properties": object{"TopicArn": ref("Topic"), "Protocol": "email", "Endpoint": ref("Email")}},
	}
	for _, a := range Alarms() {
		if a.Parameter != "" {
			p := parameter("Number", a.Above, a.Says)
			p["MinValue"] = 0
			parameters[a.Parameter] = p
		}
		resources[a.Name] = a.resource(o)
	}
	for _, c := range composites() {
		resources[c.Name] = object{"Type": "AWS::CloudWatch::CompositeAlarm", "Properties": object{
			"AlarmDescription": described(c.Text, c.Runbook, o), "AlarmRule": object{"Fn::Sub": c.Rule}, "AlarmActions": list{ref("Topic")}, "OKActions": list{ref("Topic")},
		}}
	}
	for i, q := range Questions() {
		resources[fmt.Sprintf("Query%d", i+1)] = object{"Type": "AWS::Logs::QueryDefinition", "Properties": object{
			"Name": q.Name, "QueryString": q.Query, "LogGroupNames": unless("HasLogs", list{ref("LogGroup")}, nothing),
		}}
	}
	for _, w := range watchboards() {
		resources[w.Resource] = w.resource()
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(object{ // maps of strings and numbers are always encoded
		"AWSTemplateFormatVersion": "2010-09-09",
		"Description":              "Alarms, dashboards and queries for weir. Made by weir export cloudformation; it is changed in observe/rules.",
		"Parameters":               parameters, "Conditions": conditions, "Resources": resources,
		"Outputs": object{"TopicArn": object{"Description": "The topic, for more subscriptions and for weir's own messages (docs/notify.md)", "Value": ref("Topic")}},
	})
	return b.Bytes()
}

func sharedParameters() (parameters, conditions object) {
	namespace := parameter("String", "Weir", "The namespace that weir publishes to")
	namespace["AllowedPattern"] = "[A-Za-z0-9._/#:-]{1,255}"
	value := unquoted("none", "The value of that dimension")
	value["MinLength"] = 1
	anomaly := parameter("String", "no", "Whether there are alarms on what is unusual, too: yes or no. They need two weeks of metrics")
	anomaly["AllowedPattern"] = "yes|no"
	parameters = object{
		"Namespace": namespace, "StaticValue": value, "Anomalies": anomaly,
		"Upstream":   unquoted("", "The upstream to watch. Empty means all of them together"),
		"StaticName": unquoted("", "The name of the static dimension that weir is configured with, if there is one"),
		"Email":      parameter("String", "", "Whom to tell. Empty means that the topic has no subscription of this stack"),
		"LogGroup":   parameter("String", "", "The log group with weir's log, which queries look at. Empty leaves that to who runs them"),
	}
	conditions = object{"HasAnomalies": object{"Fn::Equals": list{ref("Anomalies"), "yes"}}}
	for condition, name := range map[string]string{"HasUpstream": "Upstream", "HasStatic": "StaticName", "HasEmail": "Email", "HasLogs": "LogGroup"} {
		conditions[condition] = object{"Fn::Not": list{object{"Fn::Equals": list{ref(name), ""}}}}
	}
	return parameters, conditions
}

// described is what an alarm says of itself.
func described(text, runbook string, o Options) string {
	return text + " Runbook: " + o.Runbooks + runbook
}

// by are the dimensions of what is watched.
func by(whole bool) list {
	static := unless("HasStatic", object{"Name": ref("StaticName"), "Value": ref("StaticValue")}, nothing)
	if whole {
		return list{static}
	}
	return list{unless("HasUpstream", object{"Name": "Upstream", "Value": ref("Upstream")}, nothing), static}
}

// unitsOf are the units of metrics that are no counts.
var unitsOf = map[string]string{"RateLimiterAcquisitionLatency": "Milliseconds", "RateLimiterAcquisitionWait": "Milliseconds", "APICallLatency": "Milliseconds", "DeadLetterAge": "Seconds"}

func (a *Alarm) resource(o Options) object {
	p := object{"AlarmDescription": described(a.Text, a.Runbook, o), "EvaluationPeriods": a.Periods, "TreatMissingData": "notBreaching", "ComparisonOperator": "GreaterThanThreshold"}
	if a.Reached {
		p["ComparisonOperator"] = "GreaterThanOrEqualToThreshold"
	}
	if !a.Part {
		p["AlarmActions"], p["OKActions"] = list{ref("Topic")}, list{ref("Topic")}
	}
	if a.Points > 0 {
		p["DatapointsToAlarm"] = a.Points
	}
	made := object{"Type": "AWS::CloudWatch::Alarm", "Properties": p}
	if a.Band != "" {
		a.band(p)
		made["Condition"] = "HasAnomalies"
		return made
	}
	p["Threshold"] = a.Above
	if a.Parameter != "" {
		p["Threshold"] = ref(a.Parameter)
	}
	if a.Math != "" {
		p["Metrics"] = append(list{object{"Id": "share", "Expression": a.Math, "Label": "percent"}}, a.queries(false)...)
		return made
	}
	r := a.Reads[0]
	p["Namespace"], p["MetricName"], p["Dimensions"], p["Period"], p["Unit"] = ref("Namespace"), r.Metric, by(a.Whole), a.Period, "Count"
	if unit := unitsOf[r.Metric]; unit != "" {
		p["Unit"] = unit
	}
	if strings.HasPrefix(r.Stat, "p") {
		p["ExtendedStatistic"], p["EvaluateLowSampleCountPercentile"] = r.Stat, "ignore"
	} else {
		p["Statistic"] = r.Stat
	}
	return made
}

// letter is the name of a read in an expression.
func letter(i int) string { return string(rune('a' + i)) }

// queries are the reads of an expression.
func (a *Alarm) queries(returned bool) (all list) {
	for i, r := range a.Reads {
		all = append(all, object{"Id": letter(i), "ReturnData": returned, "MetricStat": object{
			"Metric": object{"Namespace": ref("Namespace"), "MetricName": r.Metric, "Dimensions": by(a.Whole)}, "Period": a.Period, "Stat": r.Stat,
		}})
	}
	return all
}

// band makes the threshold of an alarm what is usual: two deviations from what CloudWatch expects.
func (a *Alarm) band(p object) {
	p["Metrics"] = append(list{object{"Id": "usual", "Expression": "ANOMALY_DETECTION_BAND(a, 2)", "Label": "usual", "ReturnData": true}}, a.queries(true)...)
	p["ThresholdMetricId"] = "usual"
	p["ComparisonOperator"] = "GreaterThanUpperThreshold"
	if a.Band == "both" {
		p["ComparisonOperator"] = "LessThanLowerOrGreaterThanUpperThreshold"
	}
}

// A line of a body in which ${} stands for what the template knows is JSON once that is put in.
const ofOne, ofStatic = `,"Upstream","${Upstream}"`, `,"${StaticName}","${StaticValue}"`

// resource is a dashboard. What it watches is put into its body as dimensions: of the upstream, and the static one.
func (w *Watchboard) resource() object {
	var arns list
	for _, name := range w.Alarms {
		arns = append(arns, "${"+name+".Arn}")
	}
	widgets := list{object{"type": "alarm", "x": 0, "y": 0, "width": 24, "height": 3, "properties": object{"title": w.Name, "alarms": arns}}}
	for i := range w.Graphs {
		widgets = append(widgets, object{"type": "metric", "x": 8 * (i % 3), "y": 3 + 6*(i/3), "width": 8, "height": 6, "properties": w.Graphs[i].properties()})
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(object{"start": "-PT3H", "widgets": widgets})
	body := strings.TrimSpace(b.String())
	for mark, by := range map[string]string{`,"BY"`: "${Upstreams}${Static}", `,"WHOLE"`: "${Static}"} {
		body = strings.ReplaceAll(body, mark, by)
	}
	put := object{"Static": unless("HasStatic", object{"Fn::Sub": ofStatic}, "")}
	if slices.ContainsFunc(w.Graphs, func(g Graph) bool { return !g.Whole }) {
		put["Upstreams"] = unless("HasUpstream", object{"Fn::Sub": ofOne}, "")
	}
	return object{"Type": "AWS::CloudWatch::Dashboard", "Properties": object{
		"DashboardName": object{"Fn::Sub": "${AWS::StackName}-" + strings.ReplaceAll(w.Name, " ", "-")}, "DashboardBody": object{"Fn::Sub": list{body, put}},
	}}
}

func (g *Graph) properties() object {
	var metrics list
	if g.Math != "" {
		metrics = append(metrics, list{object{"expression": g.Math, "label": g.Title, "id": "share"}})
	}
	mark := "BY"
	if g.Whole {
		mark = "WHOLE"
	}
	for i, r := range g.Lines {
		with := object{"stat": r.Stat, "id": letter(i)}
		if g.Math != "" {
			with["visible"] = false
		} else if strings.HasPrefix(r.Stat, "p") {
			with["label"] = r.Metric + " " + r.Stat
		}
		metrics = append(metrics, list{"${Namespace}", r.Metric, mark, with})
	}
	return object{"title": g.Title, "region": "${AWS::Region}", "view": "timeSeries", "stacked": g.Stack, "period": 60, "metrics": metrics, "yAxis": object{"left": object{"label": g.Unit, "min": 0, "showUnits": false}}}
}
