// Package ecs holds tests of deploy/ecs: that CloudFormation takes the template, and that it fits weir.
package ecs
