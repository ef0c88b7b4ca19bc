package javax.annotation;

/** The annotation of generated code, which the JDK has no longer had since version 11. */
public @interface Generated {
    String[] value();

    String date() default "";

    String comments() default "";
}
