/** dq in Spring Boot. */
package io.github.redisdq.spring;
