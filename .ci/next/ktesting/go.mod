// Stands for a module that only tests of client-go need.
module k8s.io/ktesting

go 1.26.0
